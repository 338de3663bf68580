// SPDX-License-Identifier: Apache-2.0
// Virtual threads, where there are such: each calls deep() 21 times, gives the
// others way, so that its frames go to the heap, and works. For so many seconds.
import java.lang.reflect.Method;

public class JavaVirtual {
  static long sink;

  static long burn(int rounds) {
    long sum = sink;
    for (int i = 0; i < rounds; ++i) sum += sum << 7 ^ sum >>> 9 ^ i;
    return sum;
  }

  static long deep(int more) {
    if (more == 0) {
      Thread.yield();
      return burn(2000000);
    }
    return deep(more - 1) + 1;
  }

  public static void main(String[] arguments) throws Exception {
    Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
    System.out.println("ready");
    long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1000000000L;
    while (System.nanoTime() < end) {
      Runnable work = () -> sink += deep(20);
      Thread first = (Thread) start.invoke(null, work);
      Thread second = (Thread) start.invoke(null, work);
      first.join();
      second.join();
    }
  }
}
