// SPDX-License-Identifier: Apache-2.0
// Calls that are known: recursion, an interface with three implementations, of
// which one is a lambda, and a native method that calls back (a sort with a
// comparator is Java itself; doPrivileged is the JVM's). Works for so many
// seconds.
import java.security.AccessController;
import java.security.PrivilegedAction;

public class KnownJava {
  interface Work {
    int apply(int value);
  }

  static class First implements Work {
    public int apply(int value) {
      return leaf(value + 1);
    }
  }

  static class Second implements Work {
    public int apply(int value) {
      return leaf(value + 2);
    }
  }

  static int sink;

  static int leaf(int value) {
    int sum = value;
    for (int i = 0; i < 500; ++i) sum += i * value ^ sum;
    return sum;
  }

  static int recurse(int depth, Work work) {
    if (depth == 0) return work.apply(depth);
    return recurse(depth - 1, work) + 1;
  }

  @SuppressWarnings("removal")
  static int privileged() {
    return AccessController.doPrivileged((PrivilegedAction<Integer>) () -> leaf(sink));
  }

  static int viaReflection() throws Exception {
    return (Integer) KnownJava.class.getDeclaredMethod("leaf", int.class).invoke(null, sink);
  }

  static void work(long seconds) throws Exception {
    Work[] works = {new First(), new Second(), value -> leaf(value + 3)};
    long end = System.nanoTime() + seconds * 1000000000L;
    for (int i = 0; System.nanoTime() < end; ++i) {
      sink += recurse(20, works[i % works.length]);
      sink += privileged();
      sink += viaReflection();
    }
  }

  public static void main(String[] arguments) throws Exception {
    System.out.println("ready");
    work(Long.parseLong(arguments[0]));
  }
}
