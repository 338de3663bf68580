// SPDX-License-Identifier: Apache-2.0
// A web server with an index of words: java Search.java PORT
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.zip.GZIPOutputStream;

public class Search {
  interface Answer {
    byte[] of() throws Exception;
  }

  static final List<String> documents = new ArrayList<>();
  static final Map<String, List<Integer>> index = new HashMap<>();

  static void fill() {
    for (int i = 0; i < 2000; ++i) {
      StringBuilder text = new StringBuilder();
      for (int j = 0; j < 40; ++j) text.append("word").append(i * j % 997).append(' ');
      documents.add(text.toString());
    }
  }

  static byte[] reindex() {
    Map<String, List<Integer>> fresh = new HashMap<>();
    for (int i = 0; i < 200; ++i) {
      for (String word : documents.get(i).split(" ")) {
        fresh.computeIfAbsent(word, key -> new ArrayList<>()).add(i);
      }
    }
    synchronized (index) {
      index.putAll(fresh);
    }
    return bytes(fresh.size());
  }

  static byte[] ranked() {
    return bytes(documents.stream()
            .limit(300)
            .sorted(Comparator.comparing(String::hashCode).thenComparing(String::length))
            .map(text -> text.substring(0, 9))
            .collect(Collectors.joining(",")));
  }

  static byte[] matches() {
    Pattern pattern = Pattern.compile("(word1\\d+ )+word2");
    return bytes(
        documents.stream().limit(100).filter(text -> pattern.matcher(text).find()).count());
  }

  static byte[] digest() throws Exception {
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    for (int i = 0; i < 100; ++i) digest.update(documents.get(i).getBytes());
    return digest.digest();
  }

  static byte[] packed() throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (GZIPOutputStream zip = new GZIPOutputStream(out)) {
      for (int i = 0; i < 100; ++i) zip.write(documents.get(i).getBytes());
    }
    return out.toByteArray();
  }

  static byte[] bytes(Object value) {
    return String.valueOf(value).getBytes(StandardCharsets.UTF_8);
  }

  static void serve(HttpServer server, String path, Answer answer) {
    server.createContext(path, exchange -> send(exchange, answer));
  }

  static void send(HttpExchange exchange, Answer answer) throws IOException {
    try {
      byte[] body = answer.of();
      exchange.sendResponseHeaders(200, body.length);
      exchange.getResponseBody().write(body);
    } catch (Exception failure) {
      exchange.sendResponseHeaders(500, -1);
    } finally {
      exchange.close();
    }
  }

  public static void main(String[] arguments) throws IOException {
    fill();
    HttpServer server =
        HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])), 64);
    serve(server, "/reindex", Search::reindex);
    serve(server, "/ranked", Search::ranked);
    serve(server, "/matches", Search::matches);
    serve(server, "/digest", Search::digest);
    serve(server, "/packed", Search::packed);
    server.setExecutor(Executors.newFixedThreadPool(4));
    server.start();
  }
}
