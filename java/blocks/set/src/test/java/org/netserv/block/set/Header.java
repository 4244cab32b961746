// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.set;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.jar.Manifest;
import java.util.stream.Stream;
import org.osgi.framework.Version;

/** Takes OSGi's manifest headers apart. */
final class Header {
    private Header() {
    }

    /** One clause: names, attributes with their values as text, directives. Attribute names keep their type. */
    record Clause(List<String> names, Map<String, String> attributes, Map<String, String> directives,
            Map<String, String> types) {
        /** Returns the attributes with the types that the header says. */
        Map<String, Object> typed() {
            Map<String, Object> typed = new HashMap<>();
            attributes.forEach((name, value) -> typed.put(name, value(types.getOrDefault(name, "String"), value)));
            return typed;
        }

        private static Object value(String type, String value) {
            return switch (type) {
                case "Version" -> Version.parseVersion(value);
                case "List<String>" -> List.of(value.split(","));
                case "List<Version>" -> Stream.of(value.split(",")).map(Version::parseVersion).toList();
                default -> value;
            };
        }
    }

    static List<Clause> parse(Manifest manifest, String name) {
        String text = manifest.getMainAttributes().getValue(name);
        List<Clause> clauses = new ArrayList<>();
        if (text != null) {
            split(text, ',').forEach(clause -> clauses.add(clause(clause)));
        }
        return clauses;
    }

    private static Clause clause(String text) {
        Clause clause = new Clause(new ArrayList<>(), new HashMap<>(), new HashMap<>(), new HashMap<>());
        for (String part : split(text, ';')) {
            int directive = part.indexOf(":=");
            int attribute = part.indexOf('=');
            if (attribute < 0) {
                clause.names().add(part);
            } else if (directive == attribute - 1 && directive > 0) {
                clause.directives().put(part.substring(0, directive).trim(), unquoted(part.substring(directive + 2)));
            } else {
                String[] named = part.substring(0, attribute).trim().split(":", 2);
                clause.attributes().put(named[0], unquoted(part.substring(attribute + 1)));
                clause.types().put(named[0], named.length == 2 ? named[1] : "String");
            }
        }
        return clause;
    }

    private static String unquoted(String value) {
        return value.trim().replaceAll("^\"|\"$", "");
    }

    private static List<String> split(String text, char at) {
        List<String> parts = new ArrayList<>();
        boolean quoted = false;
        int start = 0;
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"') {
                quoted = !quoted;
            } else if (c == at && !quoted) {
                parts.add(text.substring(start, i).trim());
                start = i + 1;
            }
        }
        parts.add(text.substring(start).trim());
        return parts;
    }
}
