// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What bundles say about the Java that they need. */
final class JavaVersion {
    private static final Pattern CLASS_FILE = Pattern.compile("class file version (\\d+)");
    private static final Pattern IN_FILTER = Pattern.compile("version>?=\\s*([0-9.]+)");
    /** Class files of Java n have version n plus this. */
    private static final int CLASS_FILE_OFFSET = 44;

    private JavaVersion() {
    }

    /** Says that a class was compiled for a newer Java. */
    static String tooOld(UnsupportedClassVersionError error) {
        Matcher matcher = CLASS_FILE.matcher(String.valueOf(error.getMessage()));
        if (!matcher.find()) {
            return error.getMessage();
        }
        return tooOld(String.valueOf(Integer.parseInt(matcher.group(1)) - CLASS_FILE_OFFSET));
    }

    /** Says that an {@code osgi.ee} requirement of that filter is not met. */
    static String tooOldForFilter(String filter) {
        Matcher matcher = IN_FILTER.matcher(String.valueOf(filter));
        return matcher.find() ? tooOld(matcher.group(1)) : "needs " + filter + ", the node runs Java " + present();
    }

    private static String tooOld(String needed) {
        return "the bundle needs Java " + needed + ", the node runs Java " + present();
    }

    private static String present() {
        return String.valueOf(Runtime.version().feature());
    }
}
