// SPDX-License-Identifier: Apache-2.0
// A compiled caller that is deoptimized while what it calls works: outer() is
// inlined into middle(), and there is one class that shape() is of, until another
// one is loaded while burn() is at work. Prints "deoptimized" then, and works on
// for so many seconds.
public class JavaDeoptimized {
  static class Shape {
    int sides() {
      return 0;
    }
  }

  static class Square extends Shape {
    @Override
    int sides() {
      return 4;
    }
  }

  static Shape shape = new Shape();
  static volatile boolean goesOn;
  static long sink;

  static long burn(boolean isLast) {
    long sum = sink;
    do {
      for (int i = 0; i < 20000; ++i) sum += sum << 7 ^ sum >>> 9 ^ i;
    } while (isLast && goesOn);
    return sum;
  }

  static long outer(boolean isLast) {
    long sum = burn(isLast);
    return sum + shape.sides();
  }

  static long middle(boolean isLast) {
    return outer(isLast) + shape.sides();
  }

  public static void main(String[] arguments) throws Exception {
    for (int i = 0; i < 30000; ++i) {
      sink += middle(false);
      if (i > 20000) i += 5;
    }
    goesOn = true;
    Thread worker = new Thread(() -> sink += middle(true));
    worker.start();
    Thread.sleep(1000);
    sink += new Square().sides();
    System.out.println("deoptimized");
    Thread.sleep(1000 * Long.parseLong(arguments[0]));
    goesOn = false;
    worker.join();
  }
}
