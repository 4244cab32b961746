// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.jsonrpc.internal;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Locale;

/** One service over HTTP: POST of {@code application/json}, and nothing else. */
final class RpcServlet extends HttpServlet {
    private static final long serialVersionUID = 1L;
    private static final String JSON = "application/json";

    private final transient Dispatcher dispatcher;

    RpcServlet(Dispatcher dispatcher) {
        this.dispatcher = dispatcher;
    }

    @Override
    protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
        if (!"POST".equals(request.getMethod())) {
            response.setHeader("Allow", "POST");
            response.setStatus(HttpServletResponse.SC_METHOD_NOT_ALLOWED);
        } else if (request.getPathInfo() != null) {
            response.setStatus(HttpServletResponse.SC_NOT_FOUND);
        } else if (!isJson(request.getContentType())) {
            // A browser sends other types to any site without asking it first; this one it has to ask for.
            response.setStatus(HttpServletResponse.SC_UNSUPPORTED_MEDIA_TYPE);
        } else {
            answer(request, response);
        }
    }

    private static boolean isJson(String type) {
        if (type == null) {
            return false;
        }
        int end = type.indexOf(';');
        return (end < 0 ? type : type.substring(0, end)).trim().toLowerCase(Locale.ROOT).equals(JSON);
    }

    private void answer(HttpServletRequest request, HttpServletResponse response) throws IOException {
        byte[] body = read(request.getInputStream());
        if (body == null) {
            response.setStatus(HttpServletResponse.SC_REQUEST_ENTITY_TOO_LARGE);
            return;
        }
        String answer = dispatcher.answer(text(body));
        if (answer == null) {
            response.setStatus(HttpServletResponse.SC_NO_CONTENT);
            return;
        }
        byte[] bytes = answer.getBytes(StandardCharsets.UTF_8);
        response.setContentType(JSON);
        response.setContentLength(bytes.length);
        response.getOutputStream().write(bytes);
    }

    private static byte[] read(InputStream from) throws IOException {
        byte[] body = from.readNBytes(Limits.BODY_BYTES + 1);
        return body.length > Limits.BODY_BYTES ? null : body;
    }

    /** Returns the text of a body; what is not UTF-8 is no JSON either. */
    private static String text(byte[] body) {
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(body)).toString();
        } catch (CharacterCodingException broken) {
            return "";
        }
    }
}
