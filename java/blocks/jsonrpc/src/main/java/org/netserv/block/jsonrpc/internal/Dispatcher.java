// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.jsonrpc.internal;

import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import java.io.IOException;
import java.io.StringReader;
import java.lang.reflect.InvocationTargetException;
import java.util.function.BiConsumer;
import org.netserv.block.jsonrpc.JsonRpc;
import org.netserv.block.jsonrpc.JsonRpcException;

/** Answers the text of a request or batch with the text of the answer: JSON-RPC 2.0 without HTTP. Any thread. */
final class Dispatcher {
    private final Caller caller;
    private final Gson gson;
    private final BiConsumer<String, Throwable> failures;

    /**
     * Makes a dispatcher for one service.
     *
     * @param caller calls its methods
     * @param gson writes answers
     * @param failures is told the method's name and what it threw when it fails in a way that callers do not see
     */
    Dispatcher(Caller caller, Gson gson, BiConsumer<String, Throwable> failures) {
        this.caller = caller;
        this.gson = gson;
        this.failures = failures;
    }

    /** Returns the answer, or null if there is nothing to answer because all requests are notifications. */
    String answer(String body) {
        JsonElement request;
        try {
            request = parse(body);
        } catch (IOException | JsonParseException | IllegalStateException | NumberFormatException broken) {
            return gson.toJson(error(JsonNull.INSTANCE, JsonRpc.PARSE_ERROR, "Parse error", null));
        }
        JsonElement answer = request.isJsonArray() ? batch(request.getAsJsonArray()) : one(request);
        return answer == null ? null : bounded(answer);
    }

    private static JsonElement parse(String body) throws IOException {
        JsonReader reader = new JsonReader(new StringReader(body));
        reader.setStrictness(Strictness.STRICT);
        reader.setNestingLimit(Limits.DEPTH);
        // The parser takes an empty text for null; looking at it throws.
        reader.peek();
        JsonElement parsed = JsonParser.parseReader(reader);
        if (reader.peek() != JsonToken.END_DOCUMENT) {
            throw new IOException("more than one value");
        }
        return parsed;
    }

    private JsonElement batch(JsonArray requests) {
        if (requests.isEmpty() || requests.size() > Limits.BATCH) {
            String why = requests.isEmpty() ? "" : ": a batch has at most " + Limits.BATCH;
            return error(JsonNull.INSTANCE, JsonRpc.INVALID_REQUEST, "Invalid Request" + why, null);
        }
        JsonArray answers = new JsonArray();
        for (JsonElement request : requests) {
            JsonObject answer = one(request);
            if (answer != null) {
                answers.add(answer);
            }
        }
        return answers.isEmpty() ? null : answers;
    }

    private JsonObject one(JsonElement request) {
        JsonElement id = id(request);
        if (id == null || !isRequest(request.getAsJsonObject())) {
            return error(id == null ? JsonNull.INSTANCE : id, JsonRpc.INVALID_REQUEST, "Invalid Request", null);
        }
        JsonObject object = request.getAsJsonObject();
        JsonObject answer = call(object.get("method").getAsString(), object.get("params"), id);
        return object.has("id") ? answer : null;
    }

    /** Returns the request's id, JSON's null if it has none, or null if this is no request or its id is none. */
    private static JsonElement id(JsonElement request) {
        if (!request.isJsonObject()) {
            return null;
        }
        JsonElement id = request.getAsJsonObject().get("id");
        if (id == null || id.isJsonNull()) {
            return JsonNull.INSTANCE;
        }
        return id instanceof JsonPrimitive given && !given.isBoolean() ? id : null;
    }

    private static boolean isRequest(JsonObject object) {
        JsonElement params = object.get("params");
        return object.get("jsonrpc") instanceof JsonPrimitive version && version.isString()
                && version.getAsString().equals("2.0")
                && object.get("method") instanceof JsonPrimitive method && method.isString()
                && (params == null || params.isJsonArray() || params.isJsonObject());
    }

    private JsonObject call(String method, JsonElement params, JsonElement id) {
        try {
            JsonObject answer = new JsonObject();
            answer.addProperty("jsonrpc", "2.0");
            answer.add("result", caller.call(method, params));
            answer.add("id", id);
            return answer;
        } catch (JsonRpcException said) {
            return error(id, said.code(), said.getMessage(), said.data());
        } catch (InvocationTargetException | StackOverflowError failed) {
            Throwable cause = failed.getCause() == null ? failed : failed.getCause();
            if (cause instanceof VirtualMachineError broken && !(cause instanceof StackOverflowError)) {
                throw broken;
            }
            failures.accept(method, cause);
            return error(id, JsonRpc.INTERNAL_ERROR, "Internal error", null);
        }
    }

    private JsonObject error(JsonElement id, int code, String message, Object data) {
        JsonObject error = new JsonObject();
        error.addProperty("code", code);
        error.addProperty("message", String.valueOf(message));
        if (data != null) {
            error.add("data", dataOrNull(data));
        }
        JsonObject answer = new JsonObject();
        answer.addProperty("jsonrpc", "2.0");
        answer.add("error", error);
        answer.add("id", id);
        return answer;
    }

    private JsonElement dataOrNull(Object data) {
        try {
            return gson.toJsonTree(data);
        } catch (RuntimeException unwritable) {
            return JsonNull.INSTANCE;
        }
    }

    private String bounded(JsonElement answer) {
        BoundedWriter text = new BoundedWriter(Limits.ANSWER_CHARS);
        gson.toJson(answer, text);
        if (!text.isCut()) {
            return text.toString();
        }
        JsonElement id = answer.isJsonObject() ? answer.getAsJsonObject().get("id") : JsonNull.INSTANCE;
        return gson.toJson(error(id, JsonRpc.ANSWER_TOO_LARGE, "Answer too large", null));
    }
}
