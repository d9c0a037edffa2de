// Lists of slides as CSV: which column names them, and their pixel sizes.
#include <doctest/doctest.h>

#include <map>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <string>
#include <utility>

#include "config/input_scene.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

/// Behind the name of a list.
constexpr const char* further_cells =
    ": has no header, so cells after the path aren't read; name the columns in a first line, such as path,mpp";

}  // namespace

TEST_CASE("CSV lists give slides their pixel size") {
  Scene scene;
  scene.file("folder/c.svs");
  const auto mpp_of = [&](const std::string& text) {
    scene.file("a.csv", text);
    std::map<std::string, double> found;
    for (const auto& [path, mpp] : expand_inputs({scene / "a.csv"}).mpp) found[below(scene.path(), {path})[0]] = mpp;
    return found;
  };
  using Sizes = std::map<std::string, double>;
  CHECK(mpp_of("path,mpp\na.svs,0.25\nb.svs,\nfolder, 0.5 \n") == Sizes{{"a.svs", 0.25}, {"folder/c.svs", 0.5}});
  CHECK(mpp_of("mpp,path\n1e0,a.svs\n") == Sizes{{"a.svs", 1.0}});
  CHECK(mpp_of(" Path,MPP \na.svs,0.5\n") == Sizes{{"a.svs", 0.5}});
  CHECK(mpp_of("path,mpp\na.svs\n").empty());
  CHECK_THROWS_WITH_AS(mpp_of("path,mpp,mpp\na.svs,0.5,1\n"),
                       (scene / "a.csv" + ": two columns are called 'mpp'; expected one").c_str(), ConfigError);
  CHECK_THROWS_WITH_AS(
      mpp_of("path,MPP ,mpp\na.svs,0.5,1\n"),
      (scene / "a.csv" + ": two columns are called 'MPP ' and 'mpp', which are one name; expected one").c_str(),
      ConfigError);
  // Named twice, it may have it once or twice.
  CHECK(mpp_of("path,mpp\na.svs,\na.svs,0.5\na.svs,0.5\n") == Sizes{{"a.svs", 0.5}});
  const std::string place = scene / "a.csv" + ":";
  const auto refused = [&](const std::string& text, const std::string& cause) {
    CHECK_THROWS_WITH_AS(mpp_of(text), (place + cause).c_str(), ConfigError);
  };
  refused("path,mpp\na.svs,0.25\na.svs,0.5\n",
          "3: mpp is 0.5 for " + scene / "a.svs" + ", and was 0.25 in an earlier line");
  refused("path,mpp\na.svs,0\n", "2: mpp is '0'; expected 0.001 to 1000, or nothing");
  for (const char* wrong : {"-1", "0.0001", "1001", "nan", "inf", "0.5um"}) {
    refused(std::string("path,mpp\na.svs,") + wrong + "\n",
            std::string("2: mpp is '") + wrong + "'; expected 0.001 to 1000, or nothing");
  }
  // The column of a list that was cut wrong may have a name.
  for (const std::string& wrong :
       {std::string("x"), std::string("Doe^Jane"), std::string("0.5\x1b[2J"), std::string(10'000, '1')}) {
    refused("path,mpp\na.svs," + wrong + "\n", "2: mpp is no number; expected 0.001 to 1000, or nothing");
  }
}

TEST_CASE("a CSV's column of slides goes by several names, and a line says which was taken") {
  Scene scene;
  const std::string file = scene / "other.csv";
  const auto taken = [&](const std::string& text) {
    scene.file("other.csv", text);
    return scene.expand({file});
  };
  for (const char* name : {"wsi", "WSI", "slide", "Slide ", "filename", "file"}) {
    CHECK(taken("id," + std::string(name) + ",mpp\n1,a.svs,0.5\n2,b.svs,\n") == Paths{"a.svs", "b.svs"});
    CHECK(scene.warnings == Paths{file + ": the slides are those of column '" + name + "'"});
    CHECK(expand_inputs({file}).mpp.size() == 1);
  }
  // The first of the names that are there.
  CHECK(taken("file,wsi,path\nc.svs,b.svs,a.svs\n") == Paths{"a.svs"});
  CHECK(scene.warnings.empty());
  CHECK(taken("file,slide\nb.svs,a.svs\n") == Paths{"a.svs"});
  // A header that nobody knows: the column whose first cell is a slide.
  CHECK(taken("id,image\n1,a.svs\n2,b\n") == Paths{"a.svs", "b"});
  CHECK(scene.warnings ==
        Paths{file + ": line 1 is taken for a header without a column path; the slides are those of column 2"});
  // What isn't known isn't repeated: it may be no header.
  CHECK(taken("DOE JANE 19550101\na.svs\n") == Paths{"a.svs"});
  CHECK(scene.warnings ==
        Paths{file + ": line 1 is taken for a header without a column path; the slides are those of column 1"});
  CHECK(taken("image,mpp\nfirst.svs,1\n") == Paths{"first.svs"});
  CHECK(expand_inputs({file}).mpp.size() == 1);
  CHECK(taken("image\nfirst\n") == Paths{"first"});
  // A first row with a number or a file is none.
  CHECK(taken("missing,0.25\na.svs,0.5\n") == Paths{"missing", "a.svs"});
  CHECK(scene.warnings == Paths{file + further_cells});
  scene.file("there", "");
  CHECK(taken("there,x\na.svs,y\n") == Paths{"there", "a.svs"});
}

TEST_CASE("a line says that cells after the path aren't read where a CSV has no header") {
  Scene scene;
  const std::string file = scene / "bare.csv";
  const auto warnings_of = [&](const std::string& text) {
    scene.file("bare.csv", text);
    CHECK(scene.expand({file}) == Paths{"a.svs", "b.svs"});
    return scene.warnings;
  };
  // Once, however many lines and cells there are.
  CHECK(warnings_of("a.svs,0.5\nb.svs,0.3,x\n") == Paths{file + further_cells});
  CHECK(warnings_of("a.svs\nb.svs,0.3\n") == Paths{file + further_cells});
  CHECK(warnings_of("sep=;\na.svs;x\nb.svs\n") == Paths{file + further_cells});
  // Blank cells say nothing.
  CHECK(warnings_of("a.svs\nb.svs\n").empty());
  CHECK(warnings_of("a.svs,\nb.svs, ,\t\n").empty());
  CHECK(warnings_of("path,note\na.svs,1\nb.svs,2\n").empty());
}

TEST_CASE("two columns of slides are refused, whatever the case of their names and the spaces around them") {
  Scene scene;
  const std::string file = scene / "two.csv";
  for (const char* header : {"path,path", "id,path,note,path", "WSI,WSI"}) {
    scene.file("two.csv", std::string(header) + "\na.svs,b.svs,c.svs,d.svs\n");
    const std::string name = std::string(header).starts_with("WSI") ? "WSI" : "path";
    CHECK_THROWS_WITH_AS(expand_inputs({file}),
                         (file + ": two columns are called '" + name + "'; expected one").c_str(), ConfigError);
  }
  for (const auto& [header, names] :
       {std::pair{"path,Path", "'path' and 'Path'"}, std::pair{"Path,id, path", "'Path' and ' path'"},
        std::pair{"wsi,id,WSI", "'wsi' and 'WSI'"}}) {
    scene.file("two.csv", std::string(header) + "\ns1.svs,s2.svs,s3.svs\n");
    const std::string cause = file + ": two columns are called " + names + ", which are one name; expected one";
    CHECK_THROWS_WITH_AS(expand_inputs({file}), cause.c_str(), ConfigError);
  }
  // Columns that nothing is taken from may be called as they like.
  scene.file("two.csv", "path,note,note,,\na.svs,x,y,,\n");
  CHECK(scene.expand({file}) == Paths{"a.svs"});
  CHECK(scene.warnings.empty());
}

TEST_CASE("semicolons, tabs and bars separate a CSV's columns where the header says so") {
  Scene scene;
  const auto taken = [&](const std::string& text) {
    scene.file("other.csv", text);
    return scene.expand({scene / "other.csv"});
  };
  for (const std::string separator : {";", "\t", "|"}) {
    const std::string header = "id" + separator + "path" + separator + "mpp\r\n";
    CHECK(taken(header + "1" + separator + "a, b.svs" + separator + "0,25\r\n") == Paths{"a, b.svs"});
    CHECK(expand_inputs({scene / "other.csv"}).mpp.begin()->second == 0.25);
    CHECK(taken("\xEF\xBB\xBF\n" + header + "1" + separator + "\"a" + separator + "b.svs\"" + separator + "\n") ==
          Paths{"a" + separator + "b.svs"});
    CHECK(taken("\"x,y\"" + separator + "WSI\n1" + separator + "a.svs\n") == Paths{"a.svs"});
  }
  for (const std::string begin : {"sep=;\r\n", "\xEF\xBB\xBFSEP=;\n"}) {
    CHECK(taken(begin + "path;mpp\r\na,b.svs;0,5\r\n") == Paths{"a,b.svs"});
    // Without a header, too.
    CHECK(taken(begin + "a.svs;x\nb.svs;y\n") == Paths{"a.svs", "b.svs"});
  }
  // Paths may have them where no header does.
  CHECK(taken("a;b.svs\nc.svs\n") == Paths{"a;b.svs", "c.svs"});
  CHECK(taken("path\na;b.svs\n") == Paths{"a;b.svs"});
  CHECK(taken("a|b.svs\nc.svs\n") == Paths{"a|b.svs", "c.svs"});
  CHECK(taken("path\na|b.svs\n") == Paths{"a|b.svs"});
  scene.file("other.csv", "path;mpp\n\"a.svs\"x;1\n");
  CHECK_THROWS_WITH_AS(
      expand_inputs({scene / "other.csv"}),
      (scene / "other.csv" + ":2: text after a closing quote; expected a semicolon or a new line").c_str(),
      ConfigError);
}

TEST_CASE("a CSV gives its column path, else the first") {
  Scene scene;
  scene.file("a.csv", "id,path,note\r\n1,\"x, y.svs\",\"two\nlines\"\r\n\r\n2,z.svs,\r\n");
  CHECK(scene.expand({scene / "a.csv"}) == Paths{"x, y.svs", "z.svs"});
  scene.file("b.csv", "first.svs,1\nsecond.svs,path\n");
  CHECK(scene.expand({scene / "b.csv"}) == Paths{"first.svs", "second.svs"});
  // A column that is nearly one that counts is told of once, by its number.
  const std::map<std::string, std::string> slips = {{"path,mp", "2"},
                                                    {"path,MPPs", "2"},
                                                    {"path,pmp,mmpp", "2"},
                                                    {"path,cohort", ""},
                                                    {"path,mpp,mp", ""},
                                                    {"path,MPP_x", "2"},
                                                    {"path,mpp_x,mpp_y", "2"},
                                                    {"path,microns_per_pixel", "2"},
                                                    {"path,pixel", ""},
                                                    {"path,pixels,size", ""},
                                                    {"path,comppany", ""},
                                                    {"path,mpp (nm/px)", "2"},
                                                    {"path,mpp (um)", "2"},
                                                    {"path,mpp (um/px", "2"},
                                                    {"path,MPP level 0", "2"},
                                                    {"path,slide_mpp", "2"},
                                                    {"path,Pixel size [um]", "2"},
                                                    {"path,x-pixel_size", "2"},
                                                    {"path,PixelSizeX", "2"},
                                                    {"path,um/px", "2"},
                                                    {"path,mpp,mpp_y", ""},
                                                    {"path,Jane Doe\x1b mpp", "2"}};
  for (const auto& slip_of_header : slips) {
    const std::string& header = slip_of_header.first;
    const std::string& slip = slip_of_header.second;
    scene.file("slip.csv", header + "\na.svs,1\nb.svs,1\n");
    CHECK(scene.expand({scene / "slip.csv"}) == Paths{"a.svs", "b.svs"});
    const Paths expected = {scene / "slip.csv" + ": column " + slip +
                            " isn't known, and is passed over; did you mean 'mpp'?"};
    CHECK_MESSAGE(scene.warnings == (slip.empty() ? Paths() : expected), header);
  }
  scene.file("no suffix", "");
  scene.file("plain.csv", "no suffix\nb.svs\n");
  CHECK(scene.expand({scene / "plain.csv"}) == Paths{"no suffix", "b.svs"});
  scene.file("only-header.csv", "path\n");
  CHECK(scene.expand({scene / "only-header.csv"}).empty());
  scene.file("short.csv", "id,path\n1,a.svs\n2\n");
  CHECK_THROWS_WITH_AS(expand_inputs({scene / "short.csv"}),
                       (scene / "short.csv" + ":3: 1 field; expected the path in field 2").c_str(), ConfigError);
  scene.file("blank.csv", "id,path\n1,\n");
  CHECK_THROWS_WITH_AS(expand_inputs({scene / "blank.csv"}), (scene / "blank.csv" + ":2: the path is empty").c_str(),
                       ConfigError);
}

TEST_CASE("a row of a CSV with more fields than the header is refused, unless those are blank") {
  Scene scene;
  const std::string file = scene / "wide.csv";
  const auto refused = [&](const std::string& text, const std::string& counts) {
    scene.file("wide.csv", text);
    const std::string line =
        file + ":" + counts + "; put a value with a separator in it in quotes, or write a decimal point";
    CHECK_THROWS_WITH_AS(expand_inputs({file}), line.c_str(), ConfigError);
  };
  // A decimal comma, and commas in a path.
  refused("path,mpp\na.svs,1,25\n", "2: 3 fields, but the header has 2");
  refused("path,mpp\nb.svs,0.5\na.svs,1,25,,\n", "3: 3 fields, but the header has 2");
  refused("sep=;\npath;mpp\na.svs;0,5;x\n", "3: 3 fields, but the header has 2");
  refused("path\na,b.svs\n", "2: 2 fields, but the header has 1");
  refused("path,note\na.svs,,,x\n", "2: 4 fields, but the header has 2");
  refused("path,mpp,\na.svs,1,25\n", "2: 3 fields, but the header has 2");
  refused("path,mpp, ,\t\na.svs,1,25,\n", "2: 3 fields, but the header has 2");
  // Separators at the end, and quotes.
  scene.file("wide.csv", "path,mpp\na.svs,0.5,\nb.svs,\"1,25\", ,\nc.svs,,,\t\n");
  CHECK(scene.expand({file}) == Paths{"a.svs", "b.svs", "c.svs"});
  CHECK(expand_inputs({file}).mpp.at(scene / "b.svs") == 1.25);
  scene.file("wide.csv", "path,mpp,\na.svs,0.5,\nb.svs,0.25\n");
  CHECK(expand_inputs({file}).mpp.at(scene / "a.svs") == 0.5);
  // The slides' column counts without a name, too.
  scene.file("wide.csv", "id,\n7,a.svs\n");
  CHECK(scene.expand({file}) == Paths{"a.svs"});
  // Without a header the first line says nothing of the others.
  scene.file("wide.csv", "a.svs,1\nb.svs,1,25\n");
  CHECK(scene.expand({file}) == Paths{"a.svs", "b.svs"});
}
