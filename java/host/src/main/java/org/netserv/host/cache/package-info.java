// SPDX-License-Identifier: Apache-2.0
/** The building block {@code cache}: one file that the node bounds, shared by all modules of the container. */
package org.netserv.host.cache;
