// SPDX-License-Identifier: Apache-2.0
/**
 * JSON-RPC 2.0 over HTTP. A service registered with the property {@value org.netserv.block.jsonrpc.JsonRpc#NAME} is
 * called by POST to {@code /NAME}: each method of the interfaces that it is registered under is one of JSON-RPC.
 */
@Export
@Version("1.0.0")
package org.netserv.block.jsonrpc;

import org.osgi.annotation.bundle.Export;
import org.osgi.annotation.versioning.Version;
