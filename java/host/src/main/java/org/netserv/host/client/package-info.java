// SPDX-License-Identifier: Apache-2.0
/** The building block {@code http-client}: the JDK's client, one for all modules of the container. */
package org.netserv.host.client;
