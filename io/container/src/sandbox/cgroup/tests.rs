// SPDX-License-Identifier: Apache-2.0
use super::*;

const LIMITS: ContainerLimits =
    ContainerLimits { memory_bytes: 33_554_432, cpu_permille: 200, pids: 8, disk_bytes: 1_048_576 };

#[test]
fn separate_and_joint_v1_hierarchies_are_found() {
    let mounts = "\
        22 27 0:21 / /proc rw,relatime - proc proc rw\n\
        32 31 0:29 / /cg/cpu,cpuacct rw,relatime shared:4 - cgroup cgroup rw,cpu,cpuacct\n\
        35 31 0:32 / /cg/my\\040memory rw,relatime - cgroup cgroup rw,memory\n\
        36 31 0:33 / /cg/devices rw,relatime - cgroup cgroup rw,devices\n\
        39 31 0:36 / /cg/pids rw,relatime - cgroup cgroup rw,pids\n";
    let v1 = |mount: &str, controller| Hierarchy {
        version: Version::V1,
        mount: PathBuf::from(mount),
        controllers: vec![controller],
    };
    let expected = [
        v1("/cg/cpu,cpuacct", Controller::Cpu),
        v1("/cg/my memory", Controller::Memory),
        v1("/cg/pids", Controller::Pids),
    ];
    assert_eq!(detect(mounts), expected);
}

#[test]
fn a_hybrid_machine_takes_each_controller_from_where_it_is() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("cgroup.controllers"), "cpuset memory pids\n").unwrap();
    let mounts = format!(
        "32 31 0:29 / /cg/cpu rw - cgroup cgroup rw,cpu\n41 31 0:38 / {} rw - cgroup2 cgroup2 rw\n",
        root.path().display()
    );
    let found = detect(&mounts);
    assert_eq!(found[0].controllers, [Controller::Cpu]);
    assert_eq!(
        (found[1].version, &found[1].controllers[..]),
        (Version::V2, &[Controller::Memory, Controller::Pids][..])
    );
    assert!(detect("").is_empty());
    assert!(detect("nonsense\n- cgroup\n1 2 3 - cgroup cgroup\n").is_empty());
}

/// A directory tree stands for a v2 hierarchy: what is checked is which files get which text.
#[test]
fn v2_groups_get_their_limits() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("cgroup.controllers"), "cpu memory pids\n").unwrap();
    let mounts = format!("41 31 0:38 / {} rw - cgroup2 cgroup2 rw\n", root.path().display());
    let cgroups = Cgroups::prepare(&mounts, "test", None);
    assert!(cgroups.missing.is_empty(), "{:?}", cgroups.missing);
    assert_eq!(cgroups.enforced().len(), 3);
    cgroups.create("c0").unwrap().limit(&LIMITS).unwrap();
    let parent = root.path().join("netserv-test");
    for above in [root.path(), &parent] {
        check(&above.join("cgroup.subtree_control"), "+memory +cpu +pids");
    }
    let group = parent.join("c0");
    check(&group.join("memory.max"), "33554432");
    check(&group.join("memory.swap.max"), "0");
    check(&group.join("cpu.max"), "2000 10000");
    check(&group.join("pids.max"), "8");
}

#[test]
fn v1_groups_get_their_limits_below_a_given_group() {
    let root = tempfile::tempdir().unwrap();
    let mounts: Vec<String> = ["memory", "cpu", "pids"]
        .map(|name| {
            fs::create_dir_all(root.path().join(name).join("service")).unwrap();
            format!("1 2 0:3 / {}/{name} rw - cgroup cgroup rw,{name}", root.path().display())
        })
        .to_vec();
    let cgroups = Cgroups::prepare(&mounts.join("\n"), "test", Some(Path::new("/service")));
    let group = cgroups.create("c0").unwrap();
    group.limit(&LIMITS).unwrap();
    assert!(!group.take_out_of_memory());
    let in_group = |name: &str| root.path().join(name).join("service/netserv-test/c0");
    check(&in_group("memory").join("memory.limit_in_bytes"), "33554432");
    check(&in_group("memory").join("memory.kmem.tcp.limit_in_bytes"), "8388608");
    check(&in_group("cpu").join("cpu.cfs_period_us"), "10000");
    check(&in_group("cpu").join("cpu.cfs_quota_us"), "2000");
    check(&in_group("pids").join("pids.max"), "8");
    fs::write(in_group("memory").join("memory.oom_control"), "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n").unwrap();
    // Two processes were killed, so a third one's end has another cause.
    assert_eq!([(); 3].map(|()| group.take_out_of_memory()), [true, true, false]);
}

#[test]
fn controllers_that_cannot_be_had_are_named() {
    let cgroups = Cgroups::prepare("1 2 0:3 / /nowhere/pids rw - cgroup cgroup rw,pids\n", "test", None);
    assert_eq!(cgroups.missing.len(), 3, "{:?}", cgroups.missing);
    assert!(cgroups.missing.iter().any(|line| line.contains("/nowhere/pids/netserv-test")));
    assert!(cgroups.create("c0").unwrap().hierarchies.is_empty());
}

#[test]
fn quotas_stay_within_what_the_kernel_takes() {
    assert_eq!(cpu_quota(200), (2000, 10_000));
    assert_eq!(cpu_quota(999), (9990, 10_000));
    assert_eq!(cpu_quota(1000), (100_000, 100_000));
    assert_eq!(cpu_quota(1500), (150_000, 100_000));
    assert_eq!(cpu_quota(100), (1000, 10_000));
    assert_eq!(cpu_quota(50), (5000, 100_000));
    assert_eq!(cpu_quota(0), (1000, 100_000));
}

fn check(path: &Path, expected: &str) {
    assert_eq!(fs::read_to_string(path).unwrap(), expected, "{}", path.display());
}
