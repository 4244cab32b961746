// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.netmonitor;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.stream.Collectors;

/** Numbers of 64 bits without sign as text. */
final class Numbers {
    private Numbers() {
    }

    /** Returns the number that a text is in decimal, perhaps behind a plus; null if it is none. */
    static Long parse(String text) {
        // The library takes digits of other scripts too.
        String digits = text.startsWith("+") ? text.substring(1) : text;
        if (digits.isEmpty() || !digits.chars().allMatch(digit -> digit >= '0' && digit <= '9')) {
            return null;
        }
        try {
            return Long.parseUnsignedLong(digits);
        } catch (NumberFormatException e) {
            return null;
        }
    }

    /** Returns numbers with a space between them, and perhaps spaces behind; null if the bytes are anything else. */
    static long[] parseAll(byte[] bytes) {
        String text = utf8(bytes);
        if (text == null) {
            return null;
        }
        String[] words = text.replaceAll(" +$", "").split(" ", -1);
        long[] numbers = new long[words.length];
        for (int at = 0; at < words.length; at++) {
            Long number = parse(words[at]);
            if (number == null) {
                return null;
            }
            numbers[at] = number;
        }
        return numbers;
    }

    /** Returns numbers as text with a space between them. */
    static String text(long... numbers) {
        return Arrays.stream(numbers).mapToObj(Long::toUnsignedString).collect(Collectors.joining(" "));
    }

    /** Returns a text; null if the bytes are none. */
    static String utf8(byte[] bytes) {
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
        } catch (CharacterCodingException e) {
            return null;
        }
    }
}
