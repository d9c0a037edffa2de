// What the names of a slide's images begin with.
#include <doctest/doctest.h>

#include <set>

#include "ledger/image_names.hpp"
#include "ledger_runs.hpp"
#include "output/text.hpp"
#include "sink/content_hash.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

std::vector<std::string> names_of(const std::vector<std::string>& paths, std::vector<std::string> names = {},
                                  const std::vector<std::string>& others = {}) {
  std::vector<ManifestEntry> manifest;
  for (const std::string& path : paths) manifest.push_back({path, path, true});
  names.resize(paths.size());
  fill_image_names(manifest, others, names);
  return names;
}

std::string digits(const std::string& path) { return "-" + to_hexadecimal(stable_hash(path)).substr(0, 8); }

}  // namespace

TEST_CASE("a name is the stem, and has digits where the stem is taken") {
  CHECK(names_of({"/a/x.svs", "/b/y.tiff", "/c/x.svs"}) ==
        std::vector<std::string>{"x", "y", "x" + digits("/c/x.svs")});
  // Digits don't depend on which slides are there besides.
  CHECK(names_of({"/b/x.svs", "/c/x.svs"})[1] == "x" + digits("/c/x.svs"));
  CHECK(names_of({"/c/x.svs"}, {}, {"x"})[0] == "x" + digits("/c/x.svs"));
  // A stem that looks like another's digits has it first.
  const std::string looks_like = "x" + digits("/c/x.svs");
  const auto names = names_of({"/b/x.svs", "/c/x.svs", "/d/" + looks_like + ".svs"});
  CHECK(names[2] == looks_like);
  CHECK(names[1] == "x-" + to_hexadecimal(stable_hash("/c/x.svs")));
  // What is there stays.
  CHECK(names_of({"/a/x.svs", "/c/x.svs"}, {"", "x"}) == std::vector<std::string>{"x" + digits("/a/x.svs"), "x"});
}

TEST_CASE("no slide's files have another's partial names") {
  for (const std::string stem : {"x.partial", "x.PARTIAL", "x.partial.ome", ".partial"}) {
    const std::string path = "/a/" + stem + ".svs";
    CHECK(names_of({path, "/a/x.svs"}) == std::vector<std::string>{stem + digits(path), "x"});
  }
  CHECK(names_of({"/a/x.partial.y.svs", "/a/partial.svs"}) == std::vector<std::string>{"x.partial.y", "partial"});
  // What a ledger has is kept.
  CHECK(names_of({"/a/x.partial.svs"}, {"x.partial"})[0] == "x.partial");
}

TEST_CASE("names are told apart also where capital letters aren't") {
  CHECK(names_of({"/a/Slide.svs", "/b/sLIDE.svs"})[1] == "sLIDE" + digits("/b/sLIDE.svs"));
  CHECK(names_of({"/a/\u00dcBER.svs", "/b/\u00fcber.svs"})[1] != "\u00fcber");
  CHECK(names_of({"/a/\u0416.svs", "/b/\u0436.svs"})[1] != "\u0436");
  CHECK(folded_name("\u0178\u0386\u03a9\u0410\u04d0\u0139") == folded_name("\u00ff\u03ac\u03c9\u0430\u04d1\u013a"));
  CHECK(folded_name("\u03a9\u0410\u0110") == "\u03c9\u0430\u0111");
  CHECK(folded_name("\u00d7\u4e00 _.\xff") == "\u00d7\u4e00 _.\xff");
}

TEST_CASE("names are told apart by full case folding and canonical decomposition") {
  // Roman numerals, a long s, a sharp s in both cases, ligatures, a letter beyond 16 bits, Cherokee; an acute accent, a
  // ring, two accents, and syllables of two and three letters, each composed and not.
  for (const auto& both : std::vector<std::pair<std::string, std::string>>{{"\u2167", "\u2177"},
                                                                           {"\u017f", "s"},
                                                                           {"\u00df", "SS"},
                                                                           {"\u1e9e", "\u00df"},
                                                                           {"\ufb03", "ffi"},
                                                                           {"\u212a", "k"},
                                                                           {"\u03c2", "\u03a3"},
                                                                           {"\U00010400", "\U00010428"},
                                                                           {"\uab70", "\u13a0"},
                                                                           {"\u00c9", "e\u0301"},
                                                                           {"\u212b", "a\u030a"},
                                                                           {"\u01d7", "\u00fc\u0301"},
                                                                           {"\uac00", "\u1100\u1161"},
                                                                           {"\ud7a3", "\u1112\u1175\u11c2"}}) {
    const std::string& one = both.first;
    const std::string& other = both.second;
    CAPTURE(one);
    CHECK(folded_name(one) == folded_name(other));
    CHECK(names_of({"/a/x" + one + ".svs", "/b/x" + other + ".svs"})[1] != "x" + other);
  }
  // A point between two that are folded.
  CHECK(folded_name("\u0111\u2178\u0131") == "\u0111\u2178\u0131");
}

TEST_CASE("names are those that Windows can have, and each is there once") {
  CHECK(names_of({"/a/x:1.svs", "/b/x?1.svs", "/c/Aux.svs", "/d/lpt\u00b2.svs", "/e/nul.b.svs", "/f/nulb.svs"}) ==
        std::vector<std::string>{"x_1", "x_1" + digits("/b/x?1.svs"), "Aux_", "lpt\u00b2_", "nul_.b", "nulb"});
  // What a ledger has is kept.
  CHECK(names_of({"/a/x:1.svs"}, {"x:1"})[0] == "x:1");
  std::vector<std::string> own(2);
  fill_image_names({{"/a/x:1.svs", "/a/x:1.svs"}, {"/b/CON.svs", "/b/CON.svs"}}, {}, own, false);
  CHECK(own == std::vector<std::string>{"x:1", "CON"});
}

TEST_CASE("whatever a file is called, its name is one in a folder") {
  const std::vector<std::string> paths = {"/a/.svs",
                                          "/a/..svs",
                                          "/b/\xff\xfe.svs",
                                          "/c/\xff\xfd.svs",
                                          "/d/a\nb.svs",
                                          "/" + std::string(255, 'w') + ".svs",
                                          "/",
                                          "/e/.",
                                          "/f/.."};
  const auto names = names_of(paths);
  std::set<std::string> folded;
  for (const std::string& name : names) {
    CHECK_MESSAGE(is_image_name(name), name);
    CHECK(folded.insert(folded_name(name)).second);
  }
  for (const std::string& name : {std::string(), std::string("a/b"), std::string("a\0b", 3), std::string(300, 'x')}) {
    CHECK_FALSE(is_image_name(name));
  }
}

TEST_CASE("which names a slide may have") {
  const ManifestEntry slide = {"/a/link.svs", "/b/x.svs", true};
  const std::string all = "x-" + to_hexadecimal(stable_hash(slide.canonical));
  for (const std::string& name : {std::string("link"), std::string("x"), "link" + digits("/b/x.svs"),
                                  "x" + digits("/b/x.svs"), all, all + "-2"}) {
    CHECK_MESSAGE(may_name_images(name, slide, true), name);
  }
  for (const std::string& name : {std::string(), std::string("X"), std::string("x-"), "x" + digits("/a/link.svs"),
                                  all + "-", all + "-1", all + "-02", all + "-2a", all + "2"}) {
    CHECK_FALSE_MESSAGE(may_name_images(name, slide, true), name);
  }
  const ManifestEntry coloned = {"/a/x:1.svs", "/a/x:1.svs", true};
  CHECK(may_name_images("x_1", coloned, true));
  CHECK_FALSE(may_name_images("x:1", coloned, true));
  CHECK(may_name_images("x:1", coloned, false));
  const ManifestEntry partial = {"/a/x.partial.svs", "/a/x.partial.svs", true};
  CHECK_FALSE(may_name_images("x.partial", partial, true));
  CHECK(may_name_images("x.partial" + digits("/a/x.partial.svs"), partial, true));
}

TEST_CASE("a slide whose row is damaged gets its name again, whatever the row says") {
  const TemporaryFolder folder;
  const std::string path = folder.write("x.svs", std::string("x"));
  const std::vector<ManifestEntry> manifest = {{path, path, true}};
  Ledger ledger(ledger_config(folder / "out"));
  for (const std::string damaged : {"x\ny", "CON", "-rf", ".slidestream-1", "X", "x-1234567"}) {
    CAPTURE(damaged);
    ledger.begin(manifest, false);
    CHECK(ledger.image_name(0) == "x");
    SlideResult slide = result_of(path, 1);
    ledger.started(0);
    ledger.ended(0, slide);
    tamper(ledger.file(), "UPDATE slides SET image_name = '" + damaged + "'");
    const LedgerStart start = ledger.begin(manifest, false);
    CHECK(start.damaged.size() == 1);
    CHECK(start.todo.size() == 1);
    CHECK(ledger.image_name(0) == "x");
  }
}

TEST_CASE("the ledger keeps names, whatever later manifests are") {
  const TemporaryFolder folder;
  for (const std::string name : {"a", "b", "c"}) {
    std::filesystem::create_directory(folder / name);
    folder.write(name + "/x.svs", name);
  }
  const auto entry = [&](const std::string& name) {
    const std::string path = (folder / (name + "/x.svs")).string();
    return ManifestEntry{path, path, true};
  };
  const Config config = ledger_config(folder / "out");
  std::vector<std::string> names;
  {
    Ledger ledger(config);
    ledger.begin({entry("b"), entry("c")}, false);
    for (std::size_t i = 0; i < 2; ++i) names.push_back(ledger.image_name(i));
    CHECK(names[0] == "x");
    SlideResult slide = result_of(entry("c").path, 1);
    ledger.started(1);
    ledger.ended(1, slide);
  }
  Ledger ledger(config);
  ledger.begin({entry("a"), entry("b"), entry("c")}, false);
  CHECK(ledger.image_name(1) == names[0]);
  CHECK(ledger.image_name(2) == names[1]);
  const std::string third = ledger.image_name(0);
  CHECK(third == "x" + digits(entry("a").canonical));
  CHECK(slides_in(ledger).size() == 1);

  // Names of slides that aren't in the manifest are taken, too.
  ledger.begin({entry("a")}, false);
  CHECK(ledger.image_name(0) == third);
  // A name that can't be, or is another's as well, is given anew to the slide that isn't done.
  for (const char* change : {"UPDATE slides SET image_name = '../x' WHERE state <> 'done'",
                             "UPDATE slides SET image_name = (SELECT image_name FROM slides WHERE state = 'done')"}) {
    CAPTURE(change);
    tamper(ledger.file(), change);
    ledger.begin({entry("c"), entry("b"), entry("a")}, false);
    CHECK(ledger.image_name(0) == names[1]);
    CHECK(ledger.image_name(1) == "x");
    CHECK(ledger.image_name(2) == third);
    CHECK(slides_in(ledger).size() == 1);
  }
}
