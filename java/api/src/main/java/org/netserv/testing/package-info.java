// SPDX-License-Identifier: Apache-2.0
/**
 * A node for unit tests of modules, without a framework. Not exported: it is there when a module is tested, not when it
 * runs. It has no quotas; {@code netserv module test} runs a module with the real ones.
 */
package org.netserv.testing;
