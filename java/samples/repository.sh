#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fills java/dist/repository with everything that a project of `netserv module new --lang java` needs to be built without
# a network: the API, the plugins of its pom.xml and what they need in turn. Builds such a project to find out what that
# is. To be run after `mvn package` in java/.
set -euo pipefail
self=$(readlink -f "$0")
readonly self
cd "$(dirname "$self")/.."

readonly repository=$PWD/dist/repository
readonly template=$PWD/../app/netserv/src/cmd/module/template/java
readonly version=0.1.0
readonly local=${MAVEN_LOCAL_REPOSITORY:-$HOME/.m2/repository}

stamp=$(cat "$template"/* api/target/org.netserv.api.jar "$self" | sha256sum | cut -d' ' -f1)
[ "$(cat "$repository/.stamp" 2>/dev/null || true)" = "$stamp" ] && exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The API, with a pom.xml that names no parent.
api=$work/api/org/netserv/org.netserv.api/$version
mkdir -p "$api"
cp api/target/org.netserv.api.jar "$api/org.netserv.api-$version.jar"
cat > "$api/org.netserv.api-$version.pom" <<XML
<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>org.netserv</groupId>
  <artifactId>org.netserv.api</artifactId>
  <version>$version</version>
</project>
XML
for file in "$api"/*; do printf %s "$(sha1sum "$file" | cut -d' ' -f1)" > "$file.sha1"; done

# A project as `netserv module new` makes it.
project=$work/project
fill() {
  mkdir -p "$(dirname "$project/$2")"
  sed "s#@MODULE@#example.org/any#g; s#@SHORT@#any#g; s#@PACKAGE@#org.example.any#g; s#@PORT@#9#g
       s#@VERSION@#$version#g; s#@REPOSITORY@#$work/api#g" "$template/$1" > "$project/$2"
}
fill pom.xml.in pom.xml
fill bnd.bnd.in bnd.bnd
fill maven.config.in .mvn/maven.config
fill Activator.java.in src/main/java/org/example/any/Activator.java
fill PortFilter.java.in src/main/java/org/example/any/PortFilter.java
fill PortFilterTest.java.in src/test/java/org/example/any/PortFilterTest.java

# From this machine's own repository if all is there, which it is after a build of java/ and one run of this; else from
# the network.
cat > "$work/settings.xml" <<XML
<settings>
  <mirrors><mirror><id>local</id><mirrorOf>central</mirrorOf><url>file://$local</url></mirror></mirrors>
</settings>
XML
filled=$work/repository
build() { mvn -q -B -f "$project/pom.xml" "$@" clean package; }
cd "$project"
if ! build -o -s "$work/settings.xml" "-Dmaven.repo.local=$filled" > "$work/offline.log" 2>&1; then
  echo "fetching what Java modules are built with" >&2
  build >&2
  rm -rf "$filled"
  build -o -s "$work/settings.xml" "-Dmaven.repo.local=$filled" >&2
fi
find "$filled" \( -name '_remote.repositories' -o -name 'resolver-status.properties' -o -name '*.lastUpdated' \) -delete
echo "$stamp" > "$filled/.stamp"
rm -rf "$repository"
mkdir -p "$(dirname "$repository")"
mv "$filled" "$repository"
