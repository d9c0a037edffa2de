#include "system/control_groups.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "support/temporary_folder.hpp"

using namespace slidestream;
using slidestream::test::TemporaryFolder;

namespace {

namespace fs = std::filesystem;

/// A made-up tree of the system's files.
class Tree {
 public:
  void write(const std::string& file, const std::string& text) const {
    const fs::path path = root() / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  fs::path root() const { return folder_.path(); }
  GroupLimits limits() const { return group_limits(root()); }

 private:
  TemporaryFolder folder_;
};

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
const std::string no_limit = "9223372036854771712\n";

}  // namespace

TEST_CASE("version 2: the smallest limit on the way up counts, with what each group holds") {
  const Tree tree;
  tree.write("proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_7/step_0\n");
  tree.write("proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");
  const std::string slice = "sys/fs/cgroup/system.slice/slurmstepd.scope/";
  tree.write(slice + "job_7/step_0/memory.max", "max\n");
  tree.write(slice + "job_7/step_0/cpu.max", "max 100000\n");
  tree.write(slice + "job_7/memory.max", std::to_string(4096 * mib));
  tree.write(slice + "job_7/memory.current", std::to_string(1024 * mib));
  tree.write(slice + "job_7/memory.stat", "anon 1\nfile 999999999\nactive_file " + std::to_string(256 * mib) +
                                              "\ninactive_file " + std::to_string(512 * mib) + "\n");
  tree.write(slice + "job_7/cpu.max", "250000 100000\n");
  tree.write(slice + "memory.max", std::to_string(3900 * mib));
  tree.write(slice + "memory.current", std::to_string(1000 * mib));
  tree.write("sys/fs/cgroup/system.slice/cpu.max", "800000 100000\n");
  const GroupLimits limits = tree.limits();
  CHECK(limits.memory.value_or(0) == 3900 * mib);
  CHECK(limits.memory_left.value_or(0) == 2900 * mib);
  CHECK(limits.processors.value_or(0) == 3);  // two and a half, rounded up
}

TEST_CASE("version 2: memory.high limits, too") {
  const Tree tree;
  tree.write("proc/self/cgroup", "0::/a\n");
  tree.write("proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  tree.write("sys/fs/cgroup/a/memory.max", "max\n");
  tree.write("sys/fs/cgroup/a/memory.high", std::to_string(100 * mib));
  CHECK(tree.limits().memory.value_or(0) == 100 * mib);
  CHECK_FALSE(tree.limits().processors);
}

TEST_CASE("version 1: each controller has its own groups") {
  const Tree tree;
  tree.write("proc/self/cgroup",
             "5:memory:/slurm/uid_1000/job_3\n4:cpu,cpuacct:/slurm/uid_1000\n1:name=systemd:/user.slice\n0::/x\n");
  tree.write("proc/self/mountinfo",
             "31 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
             "32 24 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
  const std::string memory = "sys/fs/cgroup/memory/slurm/uid_1000/";
  tree.write(memory + "job_3/memory.limit_in_bytes", std::to_string(2048 * mib));
  tree.write(memory + "job_3/memory.usage_in_bytes", std::to_string(700 * mib));
  tree.write(memory + "job_3/memory.stat", "cache 1\ntotal_inactive_file " + std::to_string(200 * mib) + "\n");
  tree.write(memory + "memory.limit_in_bytes", no_limit);
  tree.write("sys/fs/cgroup/cpu,cpuacct/slurm/uid_1000/cpu.cfs_quota_us", "50000\n");
  tree.write("sys/fs/cgroup/cpu,cpuacct/slurm/uid_1000/cpu.cfs_period_us", "100000\n");
  tree.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  tree.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  const GroupLimits limits = tree.limits();
  CHECK(limits.memory.value_or(0) == 2048 * mib);
  CHECK(limits.memory_left.value_or(0) == 1548 * mib);
  CHECK(limits.processors.value_or(0) == 1);  // half of one
}

TEST_CASE("a container sees its own group at the mount point, whatever its path outside is") {
  for (const std::string seen : {"/docker/4f", "/"}) {
    const Tree tree;
    tree.write("proc/self/cgroup", "3:memory:/docker/4f\n2:cpu:/docker/4f\n");
    tree.write("proc/self/mountinfo", "40 24 0:27 " + seen + " /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n" +
                                          "41 24 0:28 " + seen + " /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n");
    tree.write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(512 * mib));
    tree.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000");
    tree.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
    CHECK(tree.limits().memory.value_or(0) == 512 * mib);
    CHECK(tree.limits().processors.value_or(0) == 2);
  }
  const Tree outside;
  outside.write("proc/self/cgroup", "0::/../../elsewhere\n");
  outside.write("proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  outside.write("sys/fs/cgroup/memory.max", std::to_string(64 * mib));
  CHECK(outside.limits().memory.value_or(0) == 64 * mib);
}

TEST_CASE("nothing is limited where nothing says so, or what is said means nothing") {
  const Tree tree;
  const auto is_free = [&tree] {
    const GroupLimits limits = tree.limits();
    return !limits.memory && !limits.memory_left && !limits.processors;
  };
  CHECK(is_free());
  tree.write("proc/self/cgroup", "0::/a\nnonsense\n");
  CHECK(is_free());
  tree.write("sys/fs/cgroup/a/memory.max", "");
  tree.write("sys/fs/cgroup/a/cpu.max", "100000 0\n");
  CHECK(is_free());
  tree.write("sys/fs/cgroup/a/cpu.max", "x y\n");
  tree.write("sys/fs/cgroup/a/memory.max", "12x\n");
  CHECK(is_free());
  tree.write("sys/fs/cgroup/memory.max", std::to_string(32 * mib));
  CHECK(tree.limits().memory.value_or(0) == 32 * mib);  // without mountinfo: where systems have it
}

TEST_CASE("this process may use a processor") { CHECK(allowed_processors() >= 1); }
