#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <slidestream/operator.hpp>
#include <slidestream/results.hpp>

#include "codec/copied_level.hpp"
#include "image/pyramid_builder.hpp"
#include "runtime/handoff.hpp"
#include "runtime/slot_pool.hpp"
#include "sink/image_sink.hpp"
#include "stages/network/network_admission.hpp"
#include "stages/network/slide_network.hpp"
#include "stages/run/batch.hpp"
#include "stages/run/run_context.hpp"

namespace slidestream {

class CopiedTiles;

/// Rows of a slide's images that a strip completes, one below the other in an output slot.
struct Band {
  /// Who holds it keeps the rows: it goes back with the last tile that was made of them and is written.
  std::shared_ptr<runtime::Slot> slot;
  std::vector<PixelView<MemorySpace::host>> images;  ///< by operator; without data where it makes none
  std::size_t bytes = 0;                             ///< of the slot that they take
  std::shared_ptr<const CopiedTiles> copied;         ///< tiles of level 0 of an image that takes them over
};

/// What the files of a slide are called.
struct ImageNames {
  std::string name;  ///< what all begin with
  /// Where the file NAME lies, which begins with `name`; empty: in `output.dir`/images, which is made.
  std::function<std::filesystem::path(const std::string& name)> place = {};
  /// Throws for a file that mustn't be written; may be empty.
  std::function<void(const std::filesystem::path& file)> check = {};
  /// The same for the name that an image has until it is whole.
  std::function<void(const std::filesystem::path& file)> check_partial = {};
};

/// Where the tiles of an operator's network lie in a slide that is described. \throws Error where they can't be made of
/// the slide's pixels, or stitching would take too much memory.
NetworkPlan network_plan_of(const RunContext& context, const SlideRun& slide, const Operator& op);

/// The files that are being made of a slide. Whoever works on them holds it; the last one to let go has it finished
/// (`EmitStage`).
class SlideImages : public std::enable_shared_from_this<SlideImages> {
 public:
  /// A pyramid on its way into its file.
  struct Image {
    std::size_t op = 0;    ///< that makes it, among `RunContext::operators`
    std::size_t rank = 0;  ///< of that operator in the run
    Artifact artifact;     ///< without size and digest
    std::unique_ptr<PyramidBuilder> builder;
    std::unique_ptr<ImageSink> sink;
    bool of_network = false;  ///< its rows aren't those of bands
    int first_level = 0;      ///< what level of the sink the builder's level 0 is
  };
  /// A file of vectors, on its way.
  struct VectorsOut {
    VectorsFile file;
    std::filesystem::path path;
    Artifact artifact;  ///< without size and digest
  };
  /// What a network makes of the slide.
  struct Network {
    std::size_t op = 0;                ///< that has it, among `RunContext::operators`
    std::optional<std::size_t> image;  ///< that comes of it, among `images`
    std::unique_ptr<SlideNetwork> network;
    std::size_t rank = 0;           ///< of the operator in the run
    std::string maker;              ///< that operator's name
    std::vector<VectorsOut> files;  ///< of what a network of vectors gives
    std::filesystem::path absent;   ///< where the table of tiles that failed is written; empty: nowhere
    TileVectors vectors;            ///< what is known of them beforehand
    bool failed = false;            ///< known when the slide is finished
    /// Nothing more is made of it, as a tile failed. Shared by threads.
    std::shared_ptr<std::atomic<bool>> dropped = std::make_shared<std::atomic<bool>>(false);
    GridScale pixel;  ///< pixels of level 0 per pixel of a tile
    // Used by `Networks`.
    std::size_t slide = 0;                ///< its index in the input
    std::unique_ptr<BatchFiller> filler;  ///< of batches that are the slide's alone; null where it shares them
    std::shared_ptr<NetworkAdmission::Place> place;
    std::vector<std::function<void()>> bands;  ///< of the first network: that wait for the slide to be let in
  };
  /// What is written when the slide is whole.
  struct Prepared {
    std::size_t rank = 0;
    std::filesystem::path path;
    Artifact artifact;  ///< without size and digest
    std::function<void(const std::filesystem::path&)> write;
  };
  /// The slide's result, once everything but its files is done.
  struct Finished {
    SlideResult result;
    std::size_t index = 0;                            ///< of the slide in the input
    std::function<void(SlideResult&)> conclude = {};  ///< called before it is delivered
  };

  /// Begins the files of images; called on a thread that may wait. \throws OutputError, ConfigError; Error where a file
  /// would be written over the slide.
  SlideImages(RunContext& context, const SlideRun& slide, const ImageNames& names);
  ~SlideImages();
  SlideImages(const SlideImages&) = delete;
  SlideImages& operator=(const SlideImages&) = delete;

  /// Nothing more is written: tiles that wait let go of their slots. Thread-safe.
  void drop() noexcept;
  bool dropped() const noexcept { return dropped_.load(std::memory_order_acquire); }
  /// The same for what one network makes; for everything where nothing else is made of the slide. Thread-safe.
  void drop_network(std::size_t network) noexcept;

  /// Gives the files their final names, except those of networks that failed, and lists them in the finished result.
  /// On a thread that may wait.
  /// \throws OutputError.
  void publish();
  /// Marks the finished result with what networks failed at, and writes a table of the tiles that are absent beside an
  /// image with holes. False: a stop came before networks had what they give, and there is no result. On a thread that
  /// may wait.
  bool hear_networks();
  /// Removes files that weren't published.
  void discard() noexcept;
  /// Whether less than 16 MiB are free where the slide's files lie.
  bool lacks_room() const noexcept;
  /// Removes files that nothing was written to.
  void discard_empty() noexcept;

  /// The plan of an operator's network, where its bands are of the resolution that the network's tiles have, as GPUs
  /// make them; null where they are of the level.
  const NetworkPlan* resampled_on_devices(std::size_t op) const noexcept;

  const std::string& slide() const noexcept { return slide_; }
  WorkTime& work() const noexcept { return *work_; }

  std::vector<Network> networks;  ///< tiles of images hold their memory
  std::vector<Image> images;
  CopiedLevelPtr copied;  ///< what tiles of the slide are that the image takes over; null where it has its own
  std::optional<Finished> finished;  ///< set by the reduce stage before it lets go

  // Used by the serial node that keeps bands in order.
  std::map<std::size_t, std::shared_ptr<Band>> waiting;  ///< by strip: made before their turn
  std::size_t next = 0;                                  ///< strip whose turn it is
  std::shared_ptr<Band> reducing;                        ///< on its way through the pyramids

  std::atomic<std::int64_t> pieces_left{0};  ///< of `reducing`
  runtime::Handoff handoff;                  ///< orders what a node wrote before what the next one reads

 private:
  void begin(RunContext& context, const SlideRun& slide, const ImageNames& names);
  void publish_vectors(Network& network);
  static void publish_absent(const Network& network);

  ImagesUnderWay& under_way_;
  std::string slide_;             ///< its path
  std::filesystem::path folder_;  ///< that images lie in; empty: there are none
  std::shared_ptr<WorkTime> work_;
  std::vector<Prepared> prepared_;
  std::size_t makers_ = 0;  ///< operators that make something of the slide
  std::atomic<bool> dropped_{false};
};

/// Whether images are written as they are made. \throws ConfigError naming the key where they can't be, or where an
/// operator makes one and nobody writes it. \return a line of their format for the user; empty: none.
std::string check_images(const Config& config, const Operators& operators);

/// What the settings come to for an image of a slide's level. \throws ConfigError as `image_options` does, SlideError
/// where the level's tiles are to be copied and can't be.
ImageOptions options_for(const Config& config, const Product& product, const Slide& slide, std::size_t level);

}  // namespace slidestream
