#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "launch/client/config_file.h"
#include "launch/client/option_help.h"
#include "launch/client/options.h"
#include "launch/client/peer_options.h"
#include "launch/common/text.h"

namespace starling::launch {
namespace {

bool mentions(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// A file that can be named where options want a file.
class ConfigFile {
  public:
    explicit ConfigFile(const std::string& text) {
        const int fd = mkstemp(path_);
        EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
        close(fd);
    }
    ~ConfigFile() { unlink(path_); }
    std::string path() const { return path_; }

  private:
    char path_[32] = "/tmp/starling-tests-XXXXXX";
};

// Returns the words of a row's sample. The file that a row names is a valid one of its kind.
std::vector<std::string> sample_of(const PeerOption& row, std::string_view name, const ConfigFile& hosts,
                                   const ConfigFile& ranks, const ConfigFile& commands) {
    std::vector<std::string> words = words_of(row.sample);
    for (std::string& word : words) {
        if (word != "/dev/null") continue;
        word = name == "rankfile" || name == "rf"      ? ranks.path()
               : name == "configfile" || name == "app" ? commands.path()
                                                       : hosts.path();
    }
    return words;
}

std::string parse_row(const PeerOption& row, std::string_view name, Options& out) {
    const ConfigFile hosts("localhost:2\n"), ranks("rank 0=localhost\n"), commands("-n 1 a\n");
    std::vector<std::string> arguments = sample_of(row, name, hosts, ranks, commands);
    arguments.insert(arguments.begin(), (name.size() > 1 ? "--" : "-") + std::string(name));
    if (name != "configfile" && name != "app") arguments.emplace_back("a");
    return parse_options(arguments, out);
}

TEST(PeerOptions, AnMpichThatSpawnsWithoutMpiexecIsExplained) {
    Options options;
    const std::string problem = parse_options({"-pmi_args", "40001", "default_interface", "default_key", "77"}, options);
    EXPECT_TRUE(mentions(problem, "start the program by mpiexec -n 1, because MPICH")) << problem;
}

TEST(PeerOptions, TheTableSaysWhatTheParserDoes) {
    for (const PeerOption& row : peer_options()) {
        for_each_name(row.names, [&](std::string_view name) {
            Options options;
            const std::string problem = parse_row(row, name, options);
            SCOPED_TRACE(std::string(name) + ": " + problem);
            if (row.answer == PeerAnswer::counterpart) {
                EXPECT_TRUE(mentions(problem, row.text));
                EXPECT_TRUE(mentions(problem, name));
                return;
            }
            EXPECT_EQ(problem, "");
            if (options.help || options.version) return;
            ASSERT_EQ(options.programs.size(), 1u);
            EXPECT_EQ(options.programs[0].argv, std::vector<std::string>{"a"}) << "values that the option takes";
            if (row.answer == PeerAnswer::done) {
                EXPECT_EQ(options.remarks.size(), 0u);
            } else {
                ASSERT_GE(options.remarks.size(), 1u);
                EXPECT_TRUE(mentions(options.remarks[0], name));
                EXPECT_TRUE(mentions(options.remarks[0], row.answer == PeerAnswer::ignored ? row.text : "is taken as"));
            }
        });
    }
}

TEST(PeerOptions, EachRowHasItsAnswerAndEachNameOneRow) {
    std::set<std::string_view> own, seen;
    for (const OptionHelp& option : option_help())
        for_each_name(option.names, [&](std::string_view name) { own.insert(name); });
    for (const PeerOption& row : peer_options()) {
        for_each_name(row.names, [&](std::string_view name) {
            EXPECT_TRUE(seen.insert(name).second) << name << " has two rows";
            EXPECT_EQ(own.contains(name), row.answer == PeerAnswer::done)
                << name << " is done if and only if options.def has it";
        });
        if (row.answer != PeerAnswer::done) { EXPECT_NE(row.text, "") << row.names; }
        if (row.answer != PeerAnswer::translated) continue;
        EXPECT_EQ(row.text.find('%') != std::string_view::npos, !row.sample.empty()) << row.names;
        for (const std::string& word : translation_of(row, "1")) {
            if (word[0] != '-') continue;
            EXPECT_TRUE(own.contains(word.substr(word.starts_with("--") ? 2 : 1))) << word;
        }
    }
    for (const SharedName& shared : shared_names()) EXPECT_TRUE(seen.contains(shared.name)) << shared.name;
}

TEST(PeerOptions, AnOptionWithSeveralMeaningsNamesTheOneThatCounts) {
    Options options;
    EXPECT_EQ(parse_options({"-c", "2", "a"}, options), "");
    EXPECT_EQ(options.programs[0].count, 2u);
    ASSERT_EQ(options.notes.size(), 1u);
    EXPECT_TRUE(mentions(options.notes[0], "number of processes, as in Open MPI; srun means --cpus-per-task"));
    Options plain;
    EXPECT_EQ(parse_options({"-n", "2", "-x", "PATH", "a"}, plain), "");
    EXPECT_TRUE(plain.notes.empty());
}

TEST(PeerOptions, TranslatedOptionsTakeTheirValue) {
    Options options;
    EXPECT_EQ(parse_options({"--ntasks=3", "-iface", "lo", "--cpus-per-rank", "2", "a", "-iface"}, options), "");
    EXPECT_EQ(options.programs[0].count, 3u);
    EXPECT_EQ(options.programs[0].argv, (std::vector<std::string>{"a", "-iface"}));
    const auto& environment = options.programs[0].environment;
    EXPECT_EQ(environment[0], (std::pair<std::string, std::string>("STARLING_IP_INTERFACES", "lo")));
    EXPECT_EQ(environment[1], (std::pair<std::string, std::string>("STARLING_PROCESSORS", "elements=2")));
    Options missing;
    EXPECT_TRUE(mentions(parse_options({"--ntasks"}, missing), "needs a value"));
}

std::string commands_of(const std::string& text, std::vector<std::string>& out) {
    return read_config_file(ConfigFile(text).path(), out);
}

TEST(ConfigFiles, LinesAreTheCommandsThatColonsSeparate) {
    std::vector<std::string> words;
    EXPECT_EQ(commands_of("# ocean and air\n\n-n 2 ocean -x 1\n  # more\n-n 3 \\\n  air \"a b\" 'c\"d' e\\ f \"\"\n", words),
              "");
    EXPECT_EQ(words,
              (std::vector<std::string>{"-n", "2", "ocean", "-x", "1", ":", "-n", "3", "air", "a b", "c\"d", "e f", ""}));
    for (const auto& [text, part] :
         {std::pair("# nothing\n", "has no command"), {"a \\\n", "ends with"}, {"a 'b\n", "line 1"}}) {
        words.clear();
        EXPECT_TRUE(mentions(commands_of(text, words), part)) << text;
    }
    EXPECT_TRUE(mentions(read_config_file("/nosuch", words), "/nosuch"));
}

TEST(ConfigFiles, ACommandLineMayEndWithOne) {
    const ConfigFile file("-n 2 -wdir /tmp ocean\n-n 3 air\n"), itself("-configfile /tmp/x\n");
    Options options;
    EXPECT_EQ(parse_options({"-genv", "A", "1", "-configfile", file.path()}, options), "");
    ASSERT_EQ(options.programs.size(), 2u);
    EXPECT_EQ(options.programs[0].directory, "/tmp");
    EXPECT_EQ(options.programs[1].count, 3u);
    EXPECT_EQ(options.programs[1].environment[0].second, "1");
    Options other;
    EXPECT_TRUE(mentions(parse_options({"-configfile", file.path(), "a"}, other), "must be the last option"));
    EXPECT_TRUE(mentions(parse_options({"-configfile", itself.path()}, other), "cannot name another"));
}

}  // namespace
}  // namespace starling::launch
