// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.osgi.framework.Bundle;
import org.osgi.framework.Constants;
import org.osgi.framework.namespace.ExecutionEnvironmentNamespace;
import org.osgi.framework.namespace.HostNamespace;
import org.osgi.framework.namespace.PackageNamespace;
import org.osgi.framework.wiring.BundleCapability;
import org.osgi.framework.wiring.BundleRequirement;
import org.osgi.framework.wiring.BundleRevision;
import org.osgi.framework.wiring.FrameworkWiring;
import org.osgi.resource.Namespace;
import org.osgi.resource.Requirement;
import org.osgi.resource.Resource;

/** The requirements of a bundle that nothing in the framework meets. */
final class Missing {
    private static final Pattern LOWEST = Pattern.compile("\\(version>=([^)]+)\\)");
    private static final Pattern BEYOND =
            Pattern.compile("\\(!\\(version(>=|>)([^)]+)\\)\\)|\\(version(<=|<)([^)]+)\\)");

    private final FrameworkWiring wiring;

    Missing(FrameworkWiring wiring) {
        this.wiring = wiring;
    }

    /** Returns the mandatory requirements that nothing meets. */
    List<BundleRequirement> of(Bundle bundle) {
        List<BundleRequirement> missing = new ArrayList<>();
        for (BundleRequirement requirement : bundle.adapt(BundleRevision.class).getDeclaredRequirements(null)) {
            if (isMandatory(requirement) && wiring.findProviders(requirement).isEmpty()) {
                missing.add(requirement);
            }
        }
        return missing;
    }

    /** Says what is missing, each by its name. */
    Refusal refusal(List<BundleRequirement> missing) {
        for (BundleRequirement requirement : missing) {
            if (requirement.getNamespace().equals(ExecutionEnvironmentNamespace.EXECUTION_ENVIRONMENT_NAMESPACE)) {
                String filter = requirement.getDirectives().get(Namespace.REQUIREMENT_FILTER_DIRECTIVE);
                return new Refusal(Refusal.MISSING_DEPENDENCY, JavaVersion.tooOldForFilter(filter));
            }
        }
        TreeSet<String> names = new TreeSet<>();
        missing.forEach(requirement -> names.add(name(requirement)));
        String shown = String.join(", ", names.stream().limit(Limits.MISSING_NAMED_MAX).toList());
        int more = names.size() - Limits.MISSING_NAMED_MAX;
        String rest = more > 0 ? " and " + more + " more" : "";
        return new Refusal(Refusal.MISSING_DEPENDENCY, "the node has not what the bundle needs: " + shown + rest);
    }

    private static boolean isMandatory(BundleRequirement requirement) {
        Map<String, String> directives = requirement.getDirectives();
        String effective = directives.getOrDefault(
                Namespace.REQUIREMENT_EFFECTIVE_DIRECTIVE, Namespace.EFFECTIVE_RESOLVE);
        String resolution = directives.get(Namespace.REQUIREMENT_RESOLUTION_DIRECTIVE);
        return effective.equals(Namespace.EFFECTIVE_RESOLVE)
                && !Namespace.RESOLUTION_OPTIONAL.equals(resolution)
                && !PackageNamespace.RESOLUTION_DYNAMIC.equals(resolution)
                && !requirement.getNamespace().equals(HostNamespace.HOST_NAMESPACE);
    }

    private String name(BundleRequirement requirement) {
        String namespace = requirement.getNamespace();
        String filter = requirement.getDirectives().getOrDefault(Namespace.REQUIREMENT_FILTER_DIRECTIVE, "");
        Matcher own = Pattern.compile("\\(" + Pattern.quote(namespace) + "=([^)]+)\\)").matcher(filter);
        if (!own.find()) {
            return "capability " + namespace + (filter.isEmpty() ? "" : " " + filter);
        }
        boolean isPackage = namespace.equals(PackageNamespace.PACKAGE_NAMESPACE);
        String kind = isPackage ? "package " : namespace.equals("osgi.wiring.bundle") ? "bundle "
                : "capability " + namespace + " ";
        return kind + own.group(1) + range(filter) + (isPackage ? present(own.group(1)) : "");
    }

    private static String range(String filter) {
        Matcher lowest = LOWEST.matcher(filter);
        Matcher beyond = BEYOND.matcher(filter);
        String from = lowest.find() ? " " + lowest.group(1) : "";
        if (!beyond.find()) {
            return from;
        }
        String to = beyond.group(2) != null ? beyond.group(2) : beyond.group(4);
        boolean isBelow = beyond.group(2) != null ? beyond.group(1).equals(">=") : beyond.group(3).equals("<");
        return from + (isBelow ? " to below " : " to ") + to;
    }

    /** Says which versions of a package there are, if there are any. */
    private String present(String name) {
        TreeSet<String> versions = new TreeSet<>();
        String filter = "(" + PackageNamespace.PACKAGE_NAMESPACE + "=" + name + ")";
        Wanted any = new Wanted(PackageNamespace.PACKAGE_NAMESPACE, filter);
        for (BundleCapability capability : wiring.findProviders(any)) {
            versions.add(String.valueOf(capability.getAttributes().get(Constants.VERSION_ATTRIBUTE)));
        }
        return versions.isEmpty() ? "" : " (the node has " + String.join(", ", versions) + ")";
    }

    /** A requirement of the host's own. */
    record Wanted(String namespace, String filter) implements Requirement {
        @Override
        public String getNamespace() {
            return namespace;
        }

        @Override
        public Map<String, String> getDirectives() {
            return Map.of(Namespace.REQUIREMENT_FILTER_DIRECTIVE, filter);
        }

        @Override
        public Map<String, Object> getAttributes() {
            return Map.of();
        }

        @Override
        public Resource getResource() {
            return null;
        }
    }
}
