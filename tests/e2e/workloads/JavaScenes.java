// SPDX-License-Identifier: Apache-2.0
// Says itself which stacks it has: each scene prints, the first time, what
// getStackTrace() gives where it works, and then works there, again and again,
// so that it is interpreted, compiled, and inlined. For so many seconds.
//
//   SCENE METHOD:LINE METHOD:LINE ...     the caller of burn() first
import java.util.Arrays;
import java.util.Comparator;

public class JavaScenes {
  interface Step {
    long go(int depth);
  }

  static long sink;
  static boolean prints;

  // What works. It must not be inlined (CompileCommand), so that where it is
  // called is told exactly.
  static long burn(int rounds) {
    long sum = sink;
    for (int i = 0; i < rounds; ++i) sum += sum << 7 ^ sum >>> 9 ^ i;
    return sum;
  }

  static long leaf() {
    if (prints) print();
    return burn(20000);
  }

  static void print() {
    prints = false;
    StackTraceElement[] trace = new Throwable().getStackTrace();
    StringBuilder line = new StringBuilder("SCENE");
    for (int i = 1; i < trace.length; ++i) {
      line.append(' ').append(trace[i].getClassName()).append('.');
      line.append(trace[i].getMethodName()).append(':');
      line.append(Math.max(trace[i].getLineNumber(), 0));
    }
    System.out.println(line);
  }

  static long recursion(int depth) {
    if (depth == 0) return leaf();
    return recursion(depth - 1) + 1;
  }

  static long chain() {
    return first() + 1;
  }

  static long first() {
    return second() + 1;
  }

  static long second() {
    long sum = 0;
    for (int i = 0; i < 2; ++i) {
      sum += leaf();
    }
    return sum;
  }

  static class Base implements Step {
    public long go(int depth) {
      return depth == 0 ? leaf() : go(depth - 1);
    }
  }

  static class Derived extends Base {
    @Override
    public long go(int depth) {
      return super.go(depth) + 1;
    }
  }

  static long viaLambda() {
    Step step = depth -> leaf() + depth;
    return step.go(1);
  }

  static long viaInterface() {
    Step step = new Derived();
    return step.go(3);
  }

  static long viaSort() {
    Integer[] numbers = {2, 1};
    Comparator<Integer> order =
        (a, b) -> {
          sink += leaf();
          return a - b;
        };
    Arrays.sort(numbers, order);
    return numbers[0];
  }

  static long viaSynchronized() {
    synchronized (JavaScenes.class) {
      try {
        return leaf();
      } finally {
        sink++;
      }
    }
  }

  static long caught() {
    try {
      throw new IllegalStateException();
    } catch (IllegalStateException e) {
      return leaf();
    }
  }

  public static void main(String[] arguments) {
    final int scenes = 7;
    System.out.println("ready");
    long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1000000000L;
    for (int turn = 0; System.nanoTime() < end; ++turn) {
      for (int scene = 0; scene < scenes; ++scene) {
        prints = turn == 0;
        // Each on a line of its own.
        switch (scene) {
          case 0:
            sink += chain();
            break;
          case 1:
            sink += viaLambda();
            break;
          case 2:
            sink += viaInterface();
            break;
          case 3:
            sink += viaSort();
            break;
          case 4:
            sink += viaSynchronized();
            break;
          case 5:
            sink += caught();
            break;
          default:
            sink += recursion(12);
            break;
        }
      }
    }
    System.out.println("done");
  }
}
