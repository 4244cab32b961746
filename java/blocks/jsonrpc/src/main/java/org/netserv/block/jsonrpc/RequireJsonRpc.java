// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.jsonrpc;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.osgi.annotation.bundle.Requirement;

/** Makes a bundle require the block: without a requirement or an import the node does not know that it is wanted. */
@Documented
@Retention(RetentionPolicy.CLASS)
@Target({ElementType.TYPE, ElementType.PACKAGE})
@Requirement(namespace = "osgi.implementation", name = JsonRpc.IMPLEMENTATION, version = "1.0.0")
public @interface RequireJsonRpc {
}
