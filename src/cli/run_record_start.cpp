#include "cli/run_record_start.hpp"

#include <spdlog/spdlog.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <slidestream/error.hpp>

#include "cli/terminal.hpp"
#include "ledger/artifact_files.hpp"
#include "ledger/fingerprint.hpp"
#include "ledger/identity.hpp"
#include "ledger/schema.hpp"
#include "ledger/shard.hpp"

namespace slidestream::cli {

OwnerWatch owner_watch(const RunOptions& options) {
  OwnerWatch watch;
  watch.on_watch = [](const std::string& message) { spdlog::info("{}", message); };
  // A program's own signals end it at once.
  if (EmbeddedRun* const embedded = options.embedded; embedded != nullptr) {
    watch.is_stopped = [embedded] { return embedded->control.stop_requested(); };
  }
  return watch;
}

std::vector<ManifestEntry> make_manifest(const ExpandedInputs& inputs, const RunOptions& options) {
  std::vector<ManifestEntry> manifest(inputs.slides.size());
  for (std::size_t i = 0; i < manifest.size(); ++i) manifest[i] = {inputs.slides[i], inputs.canonical[i], true};
  if (options.shard.empty()) return manifest;
  const Shard shard = parse_shard(options.shard);
  const Shard::By by = options.shard_by == "size" ? Shard::By::size : Shard::By::path;
  std::vector<std::uint64_t> sizes;
  if (by == Shard::By::size) {
    for (const std::string& path : inputs.slides) {
      const auto found = look_at(path);
      sizes.push_back(found ? found->size : 0);
    }
  }
  const std::vector<int> shards = shards_of(inputs.canonical, sizes, shard.count, by);
  for (std::size_t i = 0; i < manifest.size(); ++i) manifest[i].mine = shards[i] == shard.number;
  return manifest;
}

void log_skipped(const Config& config, const LedgerStart& start, std::size_t slides, std::size_t refused) {
  const std::string name = network_file_system(config.output.dir);
  if (!name.empty()) {
    spdlog::info("{}: on {}, whose locks may not reach other machines: let no other process write here",
                 config.output.dir, name);
  }
  if (start.mine < slides) {
    spdlog::info("this shard has {} of {} slides", start.mine, slides);
  }
  for (const std::string& path : start.changed)
    spdlog::warn("{}: has changed since it was done or failed: done again", path);
  for (const std::string& path : start.other_inputs) {
    spdlog::warn("{}: {} changed since it was done or failed: done again", path,
                 reads_outlines(config) ? "its outlines, or its mpp in the list, have" : "its mpp in the list has");
  }
  for (const std::string& path : start.vanished) {
    spdlog::warn("{}: can't be found any more; its result of an earlier run is kept", path);
  }
  for (const std::string& lacking : start.lacking) {
    spdlog::warn("{}: the slide can't be found any more; what else there is of its result is kept", lacking);
  }
  for (const std::string& unmade : start.unmade) spdlog::warn("{}: done again", unmade);
  if (start.links > 0) spdlog::warn("{}", line_of_links(start.links, start.first_link));
  if (start.list_damaged) {
    spdlog::warn(
        "{}: damaged: the list of slides isn't what was written: slides without a row are done again, and "
        "--overwrite replaces files that are there of them",
        (std::filesystem::path(config.output.dir) / ledger_name).string());
  }
  for (const std::string& damage : start.damaged) spdlog::warn("{}: done again", damage);
  if (start.done > 0) spdlog::info("skipped as done: {} of {} slides", start.done, start.mine);
  if (start.failed > 0) {
    const std::string needs = refused == 1 ? "one of them needs" : std::to_string(refused) + " of them need";
    spdlog::warn("skipped as failed: {} of {} slides; --retry-failed tries them again{}", start.failed, start.mine,
                 refused == 0 ? "" : ", and " + needs + " --overwrite, as something has a file's name");
  }
  if (start.incomplete > 0) {
    spdlog::warn("skipped as an operator failed on them: {} of {} slides; --retry-failed tries them again",
                 start.incomplete, start.mine);
  }
}

void log_other_results(const Config& config, const LedgerStart& start) {
  if (start.joined && !start.todo.empty()) {
    spdlog::warn("{}: holds joined results; with slides of its own the folders can't be joined into it again",
                 config.output.dir);
  }
  if (start.left_out > 0) {
    const bool is_one = start.left_out == 1;
    spdlog::warn("{} of earlier runs in {} {} among these inputs: {} in {}, and in no table of results",
                 count_of(start.left_out, "slide"), config.output.dir, is_one ? "isn't" : "aren't",
                 is_one ? "it stays" : "they stay", ledger_name);
  }
  if (start.of_others > 0) {
    const bool is_one = start.of_others == 1;
    spdlog::warn("{} of earlier runs in {} {} now: {} in {}, and in no table of results here",
                 count_of(start.of_others, "slide"), config.output.dir,
                 is_one ? "is another shard's" : "are other shards'", is_one ? "it stays" : "they stay", ledger_name);
  }
}

}  // namespace slidestream::cli
