// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.jsonrpc.internal;

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The methods of one service: those of the interfaces that it is registered under, and no others of its class. A name
 * with as many parameters may be there once; where an interface has it twice, none of the two can be called.
 */
final class MethodTable {
    private record Key(String name, int parameters) {
    }

    private final Map<Key, Method> methods = new HashMap<>();
    private final Set<String> names = new HashSet<>();

    private MethodTable() {
    }

    /**
     * Collects the methods.
     *
     * @param type the class of the service
     * @param interfaces the names that the service is registered under; classes among them are passed over
     */
    static MethodTable of(Class<?> type, List<String> interfaces) {
        MethodTable table = new MethodTable();
        Set<Class<?>> seen = new HashSet<>();
        Deque<Class<?>> left = new ArrayDeque<>();
        for (Class<?> now = type; now != null; now = now.getSuperclass()) {
            left.addAll(Arrays.asList(now.getInterfaces()));
        }
        while (!left.isEmpty()) {
            Class<?> one = left.pop();
            if (seen.add(one)) {
                left.addAll(Arrays.asList(one.getInterfaces()));
                if (interfaces.contains(one.getName())) {
                    table.add(one);
                }
            }
        }
        table.methods.values().removeIf(method -> method == null);
        return table;
    }

    private void add(Class<?> type) {
        for (Method method : type.getMethods()) {
            if (Modifier.isStatic(method.getModifiers()) || isObjects(method)) {
                continue;
            }
            Key key = new Key(method.getName(), method.getParameterCount());
            if (!methods.containsKey(key)) {
                methods.put(key, method);
                continue;
            }
            Method other = methods.get(key);
            if (other != null && !Arrays.equals(other.getParameterTypes(), method.getParameterTypes())) {
                methods.put(key, null);
            }
        }
        methods.forEach((key, method) -> {
            if (method != null) {
                names.add(key.name());
            }
        });
    }

    private static boolean isObjects(Method method) {
        return switch (method.getName()) {
            case "toString", "hashCode" -> method.getParameterCount() == 0;
            case "equals" -> method.getParameterCount() == 1 && method.getParameterTypes()[0] == Object.class;
            default -> false;
        };
    }

    boolean isEmpty() {
        return methods.isEmpty();
    }

    /** Tells whether there is a method of this name, with however many parameters. */
    boolean has(String name) {
        return names.contains(name);
    }

    /** Returns the method of this name with so many parameters, or null. */
    Method method(String name, int parameters) {
        return methods.get(new Key(name, parameters));
    }
}
