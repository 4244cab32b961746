// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.HttpCaller;

class CallerTest {
    private static final SharedClient SHARED = new SharedClient();

    private final CountDownLatch ended = new CountDownLatch(1);
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final Caller caller = new Caller(SHARED);
    private HttpServer server;

    @BeforeEach
    void start() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(threads);
        server.createContext("/hello", exchange -> answer(exchange, "hello".getBytes(StandardCharsets.UTF_8)));
        server.createContext("/echo", exchange -> answer(exchange, exchange.getRequestBody().readAllBytes()));
        server.createContext("/long", exchange -> answer(exchange, new byte[100_001]));
        server.createContext("/moved", exchange -> {
            exchange.getResponseHeaders().add("Location", "/hello");
            exchange.sendResponseHeaders(302, -1);
            exchange.close();
        });
        server.createContext("/headers", exchange -> {
            int count = Integer.parseInt(exchange.getRequestURI().getQuery());
            for (int number = 0; number < count; number++) {
                exchange.getResponseHeaders().add("X-Header-" + number, "v".repeat(1000));
            }
            answer(exchange, new byte[0]);
        });
        // Some of a body, and no more until the test ends.
        server.createContext("/slow", exchange -> {
            exchange.sendResponseHeaders(200, 0);
            exchange.getResponseBody().write(new byte[10]);
            exchange.getResponseBody().flush();
            await();
            exchange.close();
        });
        server.start();
    }

    @AfterEach
    void stop() throws IOException {
        ended.countDown();
        caller.close();
        server.stop(0);
        threads.shutdownNow();
    }

    private void await() {
        try {
            ended.await();
        } catch (InterruptedException over) {
            Thread.currentThread().interrupt();
        }
    }

    private static void answer(HttpExchange exchange, byte[] body) throws IOException {
        exchange.sendResponseHeaders(200, body.length == 0 ? -1 : body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    private HttpRequest.Builder request(String path) {
        return HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + server.getAddress().getPort() + path));
    }

    private HttpResponse<InputStream> send(String path) throws Exception {
        return caller.send(request(path).build());
    }

    @Test
    void aServerAnswers() throws Exception {
        HttpResponse<InputStream> response = send("/hello");
        assertEquals(200, response.statusCode());
        assertEquals("hello", new String(response.body().readAllBytes(), StandardCharsets.UTF_8));
        HttpRequest post = request("/echo").POST(HttpRequest.BodyPublishers.ofString("there")).build();
        response = caller.send(post);
        assertEquals("there", new String(response.body().readAllBytes(), StandardCharsets.UTF_8));
        assertEquals(post.uri(), response.uri());
        assertEquals(-1, response.body().read());
    }

    @Test
    void redirectsAreNotFollowed() throws Exception {
        HttpResponse<InputStream> response = send("/moved");
        assertEquals(302, response.statusCode());
        assertEquals("/hello", response.headers().firstValue("Location").orElse(""));
    }

    @Test
    void requestsAtATimeAreBounded() throws Exception {
        List<InputStream> open = new ArrayList<>();
        for (int count = 0; count < HttpCaller.REQUESTS_MAX; count++) {
            open.add(send("/slow").body());
        }
        assertEquals(Code.QUOTA, assertThrows(BlockException.class, () -> send("/hello")).code());
        open.get(0).close();
        open.get(0).close();
        // One that is read to its end counts no more either, nor does one that fails.
        for (int count = 0; count < 3; count++) {
            send("/hello").body().readAllBytes();
            assertThrows(IOException.class, () -> caller.send(HttpRequest.newBuilder(closedPort()).build()));
        }
        caller.close();
        assertThrows(IOException.class, () -> open.get(1).readAllBytes());
        assertEquals(Code.QUOTA, assertThrows(BlockException.class, () -> send("/hello")).code());
    }

    private static URI closedPort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return URI.create("http://127.0.0.1:" + socket.getLocalPort() + "/");
        }
    }

    @Test
    void bodiesAreBounded() throws Exception {
        Caller exact = new Caller(SHARED, 100_001, Duration.ofSeconds(60));
        assertEquals(100_001, exact.send(request("/long").build()).body().readAllBytes().length);
        Caller less = new Caller(SHARED, 100_000, Duration.ofSeconds(60));
        InputStream body = less.send(request("/long").build()).body();
        assertTrue(assertThrows(IOException.class, body::readAllBytes).getMessage().contains("100000 bytes"));
    }

    @Test
    void headersAreBounded() throws Exception {
        send("/headers?60").body().close();
        assertThrows(Exception.class, () -> send("/headers?66"));
        send("/hello").body().close();
    }

    @Test
    void callsEndInTime() throws Exception {
        Caller quick = new Caller(SHARED, 100, Duration.ofMillis(300));
        InputStream body = quick.send(request("/slow").build()).body();
        assertTrue(assertThrows(IOException.class, body::readAllBytes).getMessage().contains("300 ms"));
        // A server that takes the connection and says nothing.
        try (ServerSocket silent = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            URI uri = URI.create("http://127.0.0.1:" + silent.getLocalPort() + "/");
            HttpRequest request = HttpRequest.newBuilder(uri).timeout(Duration.ofMillis(100)).build();
            assertThrows(HttpTimeoutException.class, () -> caller.send(request));
        }
    }

    @Test
    void aServerThatIsNoneIsAnError() throws Exception {
        try (ServerSocket strange = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            threads.execute(() -> {
                try (Socket socket = strange.accept()) {
                    socket.getOutputStream().write("no HTTP\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
                } catch (IOException over) {
                    // The test ended.
                }
            });
            URI uri = URI.create("http://127.0.0.1:" + strange.getLocalPort() + "/");
            assertThrows(IOException.class, () -> caller.send(HttpRequest.newBuilder(uri).build()));
        }
    }
}
