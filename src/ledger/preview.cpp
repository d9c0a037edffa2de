#include "ledger/preview.hpp"

#include <filesystem>
#include <memory>
#include <system_error>

#include "ledger/artifact_files.hpp"
#include "ledger/attachments.hpp"
#include "ledger/fingerprint.hpp"
#include "ledger/identity.hpp"
#include "ledger/owner.hpp"
#include "ledger/schema.hpp"
#include "ledger/side_inputs.hpp"
#include "ledger/slide_row.hpp"

namespace slidestream {

std::optional<LedgerPreview> preview_start(const Config& config, const std::vector<std::string>& slides,
                                           const std::vector<std::string>& canonical) {
  const std::filesystem::path file = std::filesystem::path(config.output.dir) / ledger_name;
  std::error_code code;
  if (!std::filesystem::exists(file, code)) return std::nullopt;
  const std::unique_ptr<Database> database = open_to_read(file);
  database->execute("BEGIN");
  LedgerPreview preview;
  if (const auto owner = read_owner(*database); owner && is_alive(owner->process).value_or(true)) {
    preview.refusal = "belongs to a run on " + owner->process.name();
  } else if (have_decided(*database)) {
    if (const auto difference = changed_setting(*database, ledger_settings(config))) {
      preview.refusal = difference->text();
    }
  }
  Statement select(*database, "SELECT state, size, modified, side, id, attached FROM slides WHERE canonical = ?1");
  AttachmentReader attachments(*database);
  // What isn't what was written may name any file, or a folder with millions of them.
  const auto is_unmade = [&](std::int64_t slide, std::optional<std::uint64_t> attached) {
    SlideResult result;
    return attached &&
           (!attachments.read(slide, *attached, result) || !first_unmade(config.output.dir, result.artifacts).empty());
  };
  const SideInputs side_inputs(config);
  for (std::size_t i = 0; i < slides.size(); ++i) {
    select.bind_blob(1, std::string_view(canonical[i]));
    if (!select.step()) continue;
    const std::string state = select.text(0);
    const SlideIdentity before{static_cast<std::uint64_t>(select.integer(1)), select.integer(2), std::nullopt,
                               unsigned_or_null(select, 3)};
    const std::int64_t id = select.integer(4);
    const auto attached = unsigned_or_null(select, 5);
    select.reset();
    if (state != "done" && state != "failed") continue;
    auto now = look_at(slides[i]);
    if (now) now->side = side_inputs.of(slides[i]);
    if (now && (!now->same_state(before) || is_unmade(id, attached))) {
      ++preview.changed;
    } else {
      ++(state == "done" ? preview.done : preview.failed);
    }
  }
  return preview;
}

}  // namespace slidestream
