// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Stream;
import org.netserv.block.Log;

/** What {@code blocks.properties} says of the building blocks beside what their manifests say. */
final class BlockSettings {
    /** The property of a module that chooses the port of its servlet engine. */
    static final String HTTP_PORT = "http-port";
    /** Where the servlet engine reads its port from; one of the framework's properties would hide it. */
    static final String ENGINE_PORT = "org.osgi.service.http.port";

    private static final int HTTP_PORT_DEFAULT = 80;
    private static final int PORT_MAX = 65_535;

    private final Properties properties = new Properties();

    /** Reads the file of a folder; without it there is nothing to say. */
    BlockSettings(File folder, Log log) {
        File file = new File(folder, "blocks.properties");
        if (!file.exists()) {
            return;
        }
        try (InputStream in = new FileInputStream(file)) {
            properties.load(in);
        } catch (IOException | IllegalArgumentException broken) {
            log.error("the settings of building blocks cannot be read", broken);
        }
    }

    /** Returns what belongs into the framework's configuration. */
    Map<String, String> framework() {
        Map<String, String> found = new HashMap<>();
        String prefix = "framework.";
        for (String key : properties.stringPropertyNames()) {
            if (key.startsWith(prefix)) {
                found.put(key.substring(prefix.length()), properties.getProperty(key));
            }
        }
        return found;
    }

    /** Returns the symbolic names of the blocks that have to run where this one runs. */
    List<String> with(String symbolicName) {
        return Stream.of(properties.getProperty("with." + symbolicName, "").split(","))
                .map(String::trim).filter(name -> !name.isEmpty()).toList();
    }

    /**
     * Sets the port that a servlet engine takes which is started from here on.
     *
     * @throws Refusal if the module's property is no port
     */
    static void setPort(Module module) throws Refusal {
        String text = module.property(HTTP_PORT, String.valueOf(HTTP_PORT_DEFAULT)).trim();
        int port;
        try {
            port = Integer.parseInt(text);
        } catch (NumberFormatException broken) {
            port = 0;
        }
        if (port < 1 || port > PORT_MAX) {
            throw new Refusal(Refusal.BAD_CODE, "the property " + HTTP_PORT + " must be a port, not " + text);
        }
        System.setProperty(ENGINE_PORT, String.valueOf(port));
    }
}
