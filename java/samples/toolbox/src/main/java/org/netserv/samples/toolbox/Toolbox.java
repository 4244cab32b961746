// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.toolbox;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.HexFormat;
import org.netserv.block.BlockException;
import org.netserv.block.Cache;
import org.netserv.block.Compression;
import org.netserv.block.Compression.Encoding;
import org.netserv.block.Crypto;
import org.netserv.block.Hash;
import org.netserv.block.HttpCaller;
import org.netserv.block.Search;
import org.netserv.block.Sip;
import org.netserv.block.SipMessage;

/** Uses one building block for each path. */
final class Toolbox extends HttpServlet {
    private static final long serialVersionUID = 1L;
    private static final byte[] TEXT = bytes("NetServ runs modules. ".repeat(200));
    private static final byte[] REQUEST = bytes("OPTIONS sip:a SIP/2.0\r\nv: SIP/2.0/UDP h\r\nf: <sip:f>\r\n"
            + "t: <sip:t>\r\ni: 1\r\nCSeq: 1 OPTIONS\r\n\r\n");

    private final transient Blocks blocks;

    Toolbox(Blocks blocks) {
        this.blocks = blocks;
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        String answer;
        try {
            answer = use(request.getRequestURI(), request.getParameter("url"));
        } catch (BlockException | IOException | IllegalStateException failed) {
            answer = failed.toString();
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            answer = "stopped";
        }
        response.setContentType("text/plain");
        response.getWriter().println(answer);
    }

    private String use(String path, String url) throws BlockException, IOException, InterruptedException {
        return switch (path) {
            case "/kv" -> "ok " + blocks.module().kv().increment(bytes("calls"), 1);
            case "/cache" -> okIf(cache());
            case "/compress" -> okIf(compress(Encoding.GZIP) && compress(Encoding.ZSTD));
            case "/crypto" -> okIf(crypto());
            case "/hash" -> HexFormat.of().formatHex(blocks.get(Hash.class).digest(Hash.Algorithm.SHA256, bytes("abc")));
            case "/http-client" -> call(url);
            case "/match" -> okIf(blocks.get(Search.class).find(TEXT, 0, TEXT.length, bytes("modules")) == 13);
            case "/sip" -> okIf(sip());
            default -> "there is no " + path;
        };
    }

    private static String okIf(boolean isGood) {
        return isGood ? "ok" : "wrong";
    }

    private boolean cache() throws BlockException, IOException {
        Cache cache = blocks.get(Cache.class);
        try (Cache.Writer writer = cache.put("text", "text/plain", "", Duration.ofHours(1))) {
            writer.write(TEXT);
            writer.finish();
        }
        try (Cache.Entry part = cache.get("text", 8, 4)) {
            return part.stat().size() == TEXT.length && Arrays.equals(bytes("runs"), part.body().readAllBytes());
        }
    }

    private boolean compress(Encoding encoding) throws BlockException, IOException {
        Compression compression = blocks.get(Compression.class);
        ByteArrayOutputStream packed = new ByteArrayOutputStream();
        try (OutputStream out = compression.compress(encoding, 6, packed)) {
            out.write(TEXT);
        }
        InputStream from = new ByteArrayInputStream(packed.toByteArray());
        try (InputStream in = compression.decompress(encoding, TEXT.length, from)) {
            return packed.size() < TEXT.length / 10 && Arrays.equals(TEXT, in.readAllBytes());
        }
    }

    private boolean crypto() throws BlockException {
        Crypto crypto = blocks.get(Crypto.class);
        byte[] key = new byte[Crypto.KEY_BYTES];
        byte[] nonce = new byte[Crypto.NONCE_BYTES];
        blocks.module().random(key);
        for (Crypto.Cipher cipher : Crypto.Cipher.values()) {
            byte[] sealed = crypto.seal(cipher, key, nonce, TEXT, REQUEST);
            if (!crypto.equal(TEXT, crypto.open(cipher, key, nonce, sealed, REQUEST))) {
                return false;
            }
        }
        return crypto.hmacSha256(key, TEXT).length == 32;
    }

    private String call(String url) throws BlockException, IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url)).timeout(Duration.ofSeconds(5)).build();
        HttpResponse<InputStream> response = blocks.get(HttpCaller.class).send(request);
        try (InputStream body = response.body()) {
            return response.statusCode() + " " + new String(body.readNBytes(1000), StandardCharsets.UTF_8).strip();
        }
    }

    private boolean sip() {
        SipMessage message = blocks.get(Sip.class).message();
        return message.parse(REQUEST, 0, REQUEST.length) && message.isRequest("OPTIONS")
                && message.contains("via", "udp h") && message.callId().equals("1");
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }
}
