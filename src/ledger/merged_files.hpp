#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>

#include "ledger/ledger_view.hpp"
#include "ledger/merge.hpp"
#include "output/views.hpp"

namespace slidestream {

/// Counts files of slides that aren't found as they were made, by kind and size, and warns of them and of links. Files
/// stay in the folders that were joined.
void tell_absent(LedgerView& view, const std::filesystem::path& out, MergeResult& result);

/// A ledger's slides, until the merge is told to stop. \throws OutputError then: all is merged, and files are missing.
class StoppableSlides final : public SlideSource {
 public:
  StoppableSlides(SlideSource& slides, const std::function<bool()>& stopped) : slides_(slides), stopped_(stopped) {}

  void for_each(const std::function<void(const SlideResult&)>& visit) override {
    slides_.for_each([&](const SlideResult& slide) {
      if (stopped_ && stopped_()) throw OutputError("interrupted while the files of results were written");
      visit(slide);
    });
  }
  std::map<std::string, std::string> deciding() override { return slides_.deciding(); }

 private:
  SlideSource& slides_;
  const std::function<bool()>& stopped_;
};

/// Adds up what one machine can't say: the time that the slides took.
RunResult run_of(SlideSource& slides);

}  // namespace slidestream
