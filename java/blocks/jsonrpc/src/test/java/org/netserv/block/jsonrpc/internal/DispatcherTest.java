// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.jsonrpc.internal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.netserv.block.jsonrpc.JsonRpcException;

class DispatcherTest {
    /** What can be called in these tests. */
    public interface Calls {
        int subtract(int minuend, int subtrahend);

        String greet(String name);

        String greet(String name, String title);

        List<Point> line(Point from, int points);

        String ambiguous(int number);

        String ambiguous(String text);

        void update(List<Integer> values);

        Object nothing();

        String refuse() throws JsonRpcException;

        String fail();

        String endless();

        void exhaust();

        String repeat(String text, int times);
    }

    /** A structure as a parameter and as a result. */
    public record Point(int x, int y) {
    }

    /** Registered under {@link Calls} only: what it has besides cannot be called. */
    public static class Service implements Calls, Runnable {
        final List<Integer> updates = new ArrayList<>();

        @Override
        public int subtract(int minuend, int subtrahend) {
            return minuend - subtrahend;
        }

        @Override
        public String greet(String name) {
            return "hello " + name;
        }

        @Override
        public String greet(String name, String title) {
            return "hello " + title + " " + name;
        }

        @Override
        public List<Point> line(Point from, int points) {
            return IntStream.range(0, points).mapToObj(i -> new Point(from.x() + i, from.y())).toList();
        }

        @Override
        public String ambiguous(int number) {
            return "number";
        }

        @Override
        public String ambiguous(String text) {
            return "text";
        }

        @Override
        public void update(List<Integer> values) {
            updates.addAll(values);
        }

        @Override
        public Object nothing() {
            return null;
        }

        @Override
        public String refuse() throws JsonRpcException {
            throw new JsonRpcException(17, "not today", Map.of("retry", 5));
        }

        @Override
        public String fail() {
            throw new IllegalStateException("a secret of the inside");
        }

        @Override
        public String endless() {
            return endless() + endless();
        }

        @Override
        public void exhaust() {
            throw new OutOfMemoryError("a test");
        }

        @Override
        public String repeat(String text, int times) {
            return text.repeat(times);
        }

        @Override
        public void run() {
            throw new AssertionError("must not be callable");
        }
    }

    private final Service service = new Service();
    private final List<String> failures = new ArrayList<>();
    private final Dispatcher dispatcher = dispatcher();

    private Dispatcher dispatcher() {
        Gson gson = new GsonBuilder().disableHtmlEscaping().serializeNulls().create();
        MethodTable methods = MethodTable.of(Service.class, List.of(Calls.class.getName(), Service.class.getName()));
        return new Dispatcher(new Caller(service, methods, gson), gson,
                (method, cause) -> failures.add(method + " " + cause));
    }

    /** Checks the answer to a body; ' stands for ". */
    private void check(String body, String answer) {
        String real = dispatcher.answer(body.replace('\'', '"'));
        assertEquals(answer == null ? null : answer.replace('\'', '"'), real);
    }

    /** Checks the answer to a call with id 1. */
    private void call(String method, String params, String result) {
        check("{'jsonrpc':'2.0','method':'" + method + "'" + (params.isEmpty() ? "" : ",'params':" + params) + ",'id':1}",
                "{'jsonrpc':'2.0'," + result + ",'id':1}");
    }

    private static String error(int code, String message) {
        return "'error':{'code':" + code + ",'message':'" + message + "'}";
    }

    /** The examples of section 7 of the specification that are about one request. */
    @Test
    void examplesOfTheSpecification() {
        check("{'jsonrpc': '2.0', 'method': 'subtract', 'params': [42, 23], 'id': 1}",
                "{'jsonrpc':'2.0','result':19,'id':1}");
        check("{'jsonrpc': '2.0', 'method': 'subtract', 'params': {'subtrahend': 23, 'minuend': 42}, 'id': 3}",
                "{'jsonrpc':'2.0','result':19,'id':3}");
        check("{'jsonrpc': '2.0', 'method': 'update', 'params': [[1,2,3]]}", null);
        assertEquals(List.of(1, 2, 3), service.updates);
        check("{'jsonrpc': '2.0', 'method': 'foobar'}", null);
        check("{'jsonrpc': '2.0', 'method': 'foobar', 'id': '1'}",
                "{'jsonrpc':'2.0'," + error(-32601, "Method not found") + ",'id':'1'}");
        check("{'jsonrpc': '2.0', 'method': 'foobar, 'params': 'bar', 'baz]",
                "{'jsonrpc':'2.0'," + error(-32700, "Parse error") + ",'id':null}");
        check("{'jsonrpc': '2.0', 'method': 1, 'params': 'bar'}",
                "{'jsonrpc':'2.0'," + error(-32600, "Invalid Request") + ",'id':null}");
    }

    /** The examples of section 7 about batches. */
    @Test
    void examplesOfBatches() {
        String invalid = "{'jsonrpc':'2.0'," + error(-32600, "Invalid Request") + ",'id':null}";
        check("[{'jsonrpc': '2.0', 'method': 'subtract', 'params': [3, 1], 'id': '1'}, {'jsonrpc': '2.0', 'method'",
                "{'jsonrpc':'2.0'," + error(-32700, "Parse error") + ",'id':null}");
        check("[]", invalid);
        check("[1]", "[" + invalid + "]");
        check("[1,2,3]", "[" + invalid + "," + invalid + "," + invalid + "]");
        check("[{'jsonrpc': '2.0', 'method': 'subtract', 'params': [42,23], 'id': '2'},"
                + "{'jsonrpc': '2.0', 'method': 'update', 'params': [[7]]}, {'foo': 'boo'},"
                + "{'jsonrpc': '2.0', 'method': 'foo.get', 'params': {'name': 'myself'}, 'id': '5'}]",
                "[{'jsonrpc':'2.0','result':19,'id':'2'}," + invalid
                + ",{'jsonrpc':'2.0'," + error(-32601, "Method not found") + ",'id':'5'}]");
        check("[{'jsonrpc': '2.0', 'method': 'update', 'params': [[7]]}]", null);
        assertEquals(List.of(7, 7), service.updates);
    }

    @Test
    void idsComeBackAsTheyWere() {
        for (String id : List.of("0", "-7", "1.5", "123456789012345678901234567890", "'x'", "''", "null")) {
            check("{'jsonrpc':'2.0','method':'nothing','id':" + id + "}",
                    "{'jsonrpc':'2.0','result':null,'id':" + id + "}");
        }
        for (String id : List.of("true", "[1]", "{}")) {
            check("{'jsonrpc':'2.0','method':'nothing','id':" + id + "}",
                    "{'jsonrpc':'2.0'," + error(-32600, "Invalid Request") + ",'id':null}");
        }
    }

    @Test
    void methodsAreChosenByNameAndNumberOfParameters() {
        call("greet", "['Ada']", "'result':'hello Ada'");
        call("greet", "['Ada','Lady']", "'result':'hello Lady Ada'");
        call("greet", "[]", error(-32602, "Invalid params: not with 0 parameters"));
        call("greet", "", error(-32602, "Invalid params: not with 0 parameters"));
        call("ambiguous", "[1]", error(-32601, "Method not found"));
        call("run", "", error(-32601, "Method not found"));
        call("hashCode", "", error(-32601, "Method not found"));
        call("getClass", "", error(-32601, "Method not found"));
    }

    @Test
    void structuresAreParametersAndResults() {
        call("line", "[{'x':1,'y':2},2]", "'result':[{'x':1,'y':2},{'x':2,'y':2}]");
        call("line", "{'points':1,'from':{'x':1,'y':2}}", "'result':[{'x':1,'y':2}]");
        call("line", "{'points':1,'to':{'x':1,'y':2}}", error(-32602, "Invalid params: without from"));
    }

    @Test
    void parametersThatDoNotFitAreRefused() {
        call("subtract", "['a',1]", error(-32602, "Invalid params: parameter 0 is no int"));
        call("subtract", "[1,1.5]", error(-32602, "Invalid params: parameter 1 is no int"));
        call("subtract", "[1,99999999999]", error(-32602, "Invalid params: parameter 1 is no int"));
        call("subtract", "[1,null]", error(-32602, "Invalid params: parameter 1 must not be null"));
        call("subtract", "[1,[2]]", error(-32602, "Invalid params: parameter 1 is no int"));
        call("line", "[7,2]", error(-32602, "Invalid params: parameter 0 is no Point"));
        check("{'jsonrpc':'2.0','method':'nothing','params':7,'id':1}",
                "{'jsonrpc':'2.0'," + error(-32600, "Invalid Request") + ",'id':1}");
    }

    @Test
    void failuresKeepTheirSecrets() {
        call("refuse", "", "'error':{'code':17,'message':'not today','data':{'retry':5}}");
        call("fail", "", error(-32603, "Internal error"));
        call("endless", "", error(-32603, "Internal error"));
        assertEquals(2, failures.size());
        assertEquals("fail java.lang.IllegalStateException: a secret of the inside", failures.get(0));
        assertThrows(OutOfMemoryError.class, () -> dispatcher.answer("{\"jsonrpc\":\"2.0\",\"method\":\"exhaust\"}"));
    }

    @Test
    void whatIsNoJsonIsAParseError() {
        String answer = "{'jsonrpc':'2.0'," + error(-32700, "Parse error") + ",'id':null}";
        for (String body : List.of("", " ", "{", "{} {}", "[1,]", "{'a':1,}", "nul", "NaN", "{a:1}", "{'a':01}",
                "'\u0001'", "[".repeat(33) + "]".repeat(33), "[".repeat(60_000))) {
            check(body, answer);
        }
    }

    @Test
    void versionsOtherThanTwoAreRefused() {
        for (String version : List.of("'1.0'", "2.0", "null", "['2.0']")) {
            check("{'jsonrpc':" + version + ",'method':'nothing','id':1}",
                    "{'jsonrpc':'2.0'," + error(-32600, "Invalid Request") + ",'id':1}");
        }
    }

    @Test
    void batchesAreBounded() {
        String one = "{'jsonrpc':'2.0','method':'nothing','id':1}";
        String most = IntStream.range(0, Limits.BATCH).mapToObj(i -> one).collect(Collectors.joining(",", "[", "]"));
        assertTrue(dispatcher.answer(most.replace('\'', '"')).startsWith("[{\"jsonrpc\":\"2.0\",\"result\":null"));
        check(most.replace("]", "," + one + "]"), "{'jsonrpc':'2.0',"
                + error(-32600, "Invalid Request: a batch has at most " + Limits.BATCH) + ",'id':null}");
    }

    @Test
    void answersAreBounded() {
        int most = Limits.ANSWER_CHARS - "{'jsonrpc':'2.0','result':'','id':1}".length();
        call("repeat", "['a'," + most + "]", "'result':'" + "a".repeat(most) + "'");
        call("repeat", "['a'," + (most + 1) + "]", error(-32001, "Answer too large"));
    }

    @Test
    void classesAmongTheNamesAreNotSearched() {
        assertTrue(MethodTable.of(Service.class, List.of(Service.class.getName())).isEmpty());
        assertNull(MethodTable.of(Service.class, List.of(Runnable.class.getName())).method("subtract", 2));
    }
}
