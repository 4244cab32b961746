// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.jsonrpc.internal;

import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Parameter;
import org.netserv.block.jsonrpc.JsonRpc;
import org.netserv.block.jsonrpc.JsonRpcException;

/** Calls the methods of one service with parameters from JSON. Any thread. */
final class Caller {
    private final Object service;
    private final MethodTable methods;
    private final Gson gson;

    Caller(Object service, MethodTable methods, Gson gson) {
        this.service = service;
        this.methods = methods;
        this.gson = gson;
    }

    /**
     * Calls a method.
     *
     * @param name the method's name
     * @param params an array, an object, or null for none
     * @return the result, as JSON
     * @throws JsonRpcException if there is no such method, the parameters do not fit, or the method says so
     * @throws InvocationTargetException if the method throws anything else
     */
    JsonElement call(String name, JsonElement params) throws JsonRpcException, InvocationTargetException {
        if (!methods.has(name)) {
            throw new JsonRpcException(JsonRpc.METHOD_NOT_FOUND, "Method not found");
        }
        int count = params == null ? 0 : params.isJsonArray() ? params.getAsJsonArray().size()
                : params.getAsJsonObject().size();
        Method method = methods.method(name, count);
        if (method == null) {
            throw invalid("not with " + count + " parameters");
        }
        Object[] arguments = new Object[count];
        for (int i = 0; i < count; i++) {
            Parameter parameter = method.getParameters()[i];
            JsonElement given = params.isJsonArray() ? params.getAsJsonArray().get(i)
                    : named(params.getAsJsonObject(), parameter);
            arguments[i] = argument(parameter, given, i);
        }
        return invoke(method, arguments);
    }

    private static JsonElement named(JsonObject params, Parameter parameter) throws JsonRpcException {
        if (!parameter.isNamePresent()) {
            throw invalid("this method takes an array only: it was compiled without parameter names");
        }
        JsonElement given = params.get(parameter.getName());
        if (given == null) {
            throw invalid("without " + parameter.getName());
        }
        return given;
    }

    private Object argument(Parameter parameter, JsonElement given, int i) throws JsonRpcException {
        if (given instanceof JsonNull && parameter.getType().isPrimitive()) {
            throw invalid("parameter " + i + " must not be null");
        }
        try {
            // By way of text: a number that was parsed already is cut to the type, one that is text has to fit.
            return gson.fromJson(given.toString(), parameter.getParameterizedType());
        } catch (JsonParseException | NumberFormatException | ClassCastException | IllegalStateException
                | UnsupportedOperationException unfit) {
            throw invalid("parameter " + i + " is no " + parameter.getType().getSimpleName());
        }
    }

    private JsonElement invoke(Method method, Object[] arguments) throws JsonRpcException, InvocationTargetException {
        try {
            return gson.toJsonTree(method.invoke(service, arguments));
        } catch (InvocationTargetException thrown) {
            if (thrown.getCause() instanceof JsonRpcException own) {
                throw own;
            }
            throw thrown;
        } catch (IllegalAccessException | RuntimeException unwritable) {
            throw new InvocationTargetException(unwritable);
        }
    }

    private static JsonRpcException invalid(String why) {
        return new JsonRpcException(JsonRpc.INVALID_PARAMS, "Invalid params: " + why);
    }
}
