// SPDX-License-Identifier: Apache-2.0
//! Variables of the environment.

/// What the program reads from its environment, as shown by `--help` and in the manual pages.
pub const ENVIRONMENT: &str = "\
Environment:
  NETSERV_SOCKET             the default of --socket
  NETSERV_USER               the default of --user
  NETSERV_KEY                the default of --key
  NETSERV_GRANT              the default of --grant
  NETSERV_PROOF              the default of --proof
  NETSERV_CHECKLIST          the default of --checklist
  NETSERV_WORKER             the program netserv-worker, if it is not beside netserv
  NETSERV_JVM                the program netserv-jvm, if it is not beside netserv
  NETSERV_JAVA               the folder netserv-java, if it is not beside netserv
  NETSERV_REGISTRY_USER      user name of `module push` at a registry
  NETSERV_REGISTRY_PASSWORD  password of that user
  XDG_CONFIG_HOME            folder of netserv/key.pem; ~/.config if not set
  NO_COLOR                   if set, switches colours off";
