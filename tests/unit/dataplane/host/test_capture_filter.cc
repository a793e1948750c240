// SPDX-License-Identifier: Apache-2.0
//
// Which frames a capture takes, in words.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "dataplane/capture_filter.h"
#include "lib/transport/wire/cna_packet.h"
#include "tests/unit/dataplane/host/pcapng_reader.h"

namespace ub {
namespace {

using Direction = pcapng::Direction;

// Frames of UB as the fuzzer has them, from 10.0.0.1 to 10.0.0.2 where they have addresses.
std::string frame(const std::string& name) { return test::read_file(UB_CORPUS "/fuzz_packet/" + name); }

struct Filter {
  explicit Filter(std::string_view text) { EXPECT_TRUE(filter.parse(text, &why)) << why; }
  bool takes(const std::string& bytes, uint32_t link = 1, Direction direction = Direction::kIn) const {
    return filter.takes(link, direction, std::as_bytes(std::span(bytes)));
  }
  CaptureFilter filter;
  std::string why;
};

TEST(CaptureFilter, no_text_takes_everything) {
  const Filter all("");
  EXPECT_TRUE(all.takes(frame("write")));
  EXPECT_TRUE(all.takes("no frame at all", 77, Direction::kOut));
  EXPECT_FALSE(all.filter.wants_dropped());
}

TEST(CaptureFilter, links_and_directions) {
  const Filter f("link=1,3..5 direction=out");
  for (uint32_t link = 0; link < 8; ++link) {
    const bool wanted = link == 1 || (link >= 3 && link <= 5);
    EXPECT_EQ(f.takes("x", link, Direction::kOut), wanted) << link;
    EXPECT_FALSE(f.takes("x", link, Direction::kIn));
  }
}

TEST(CaptureFilter, either_tpn_of_a_packet_will_do) {
  // 123456 > abcdef, in hexadecimal.
  EXPECT_TRUE(Filter("tpn=1193046").takes(frame("write")));
  EXPECT_TRUE(Filter("tpn=11259375").takes(frame("write")));
  EXPECT_TRUE(Filter("tpn=1,1193000..1194000").takes(frame("tpack")));
  EXPECT_FALSE(Filter("tpn=1193047").takes(frame("write")));
  EXPECT_FALSE(Filter("tpn=0..16777215").takes(frame("um_send"))) << "a datagram has none";
}

TEST(CaptureFilter, kinds) {
  const std::pair<const char*, const char*> known[] = {{"write", "rtp"},  {"tpsack_cc", "rtp"},  {"cnp", "rtp"},
                                                       {"nth24", "rtp"},  {"control", "record"}, {"load", "bypass"},
                                                       {"um_send", "datagram"}};
  for (const auto& [name, kind] : known) {
    for (const char* asked : {"record", "datagram", "rtp", "ctp", "bypass", "roce"}) {
      const bool wanted = std::string_view(asked) == kind;
      EXPECT_EQ(Filter(std::string("kind=") + asked).takes(frame(name)), wanted) << name << " " << asked;
    }
    EXPECT_TRUE(Filter("kind=roce,record,rtp,datagram,bypass").takes(frame(name))) << name;
  }
  std::string roce = frame("read");
  roce[36] = 4791 >> 8;  // the port that it goes to
  roce[37] = static_cast<char>(4791 & 0xff);
  EXPECT_TRUE(Filter("kind=roce").takes(roce));
  EXPECT_FALSE(Filter("kind=rtp").takes(roce));
  EXPECT_FALSE(Filter("kind=record,datagram,rtp,ctp,bypass,roce").takes("rubbish"));
}

TEST(CaptureFilter, the_peer_is_at_the_other_end) {
  const std::string read = frame("read");
  EXPECT_TRUE(Filter("peer=10.0.0.1").takes(read, 1, Direction::kIn));
  EXPECT_FALSE(Filter("peer=10.0.0.1").takes(read, 1, Direction::kOut));
  EXPECT_TRUE(Filter("peer=fd00::1,10.0.0.2").takes(read, 1, Direction::kOut));
  EXPECT_FALSE(Filter("peer=10.0.0.3").takes(read));
  EXPECT_TRUE(Filter("peer=fd00::1").takes(frame("write")));
  EXPECT_FALSE(Filter("peer=10.0.0.1").takes(frame("load"))) << "it has no address";
  // NTH24 has the low 24 bits of the addresses.
  std::string cna(200, '\0');
  const wire::NetTemplate net = wire::cna_template({IpAddress::from_v4(0x0A010203), 4792},
                                                   {IpAddress::from_v4(0x0A040506), 4792}, 0);
  net.write(reinterpret_cast<std::byte*>(cna.data()), cna.size() - net.size, 0);
  const std::string_view from = "peer=10.1.2.3", to = "peer=10.4.5.6";
  EXPECT_TRUE(Filter(from).takes(cna, 1, Direction::kIn));
  EXPECT_FALSE(Filter(from).takes(cna, 1, Direction::kOut));
  EXPECT_TRUE(Filter(to).takes(cna, 1, Direction::kOut));
  EXPECT_FALSE(Filter(to).takes(cna, 1, Direction::kIn));
}

TEST(CaptureFilter, dropped_frames_by_the_names_of_counters) {
  const Filter f("dropped=rx.drop.bad_icrc,roce.rx.drop.*");
  EXPECT_TRUE(f.filter.wants_dropped());
  EXPECT_TRUE(f.filter.takes_reason(Counter::kRxDropBadIcrc));
  EXPECT_TRUE(f.filter.takes_reason(Counter::kRoceRxDropBadMad));
  EXPECT_FALSE(f.filter.takes_reason(Counter::kRxDropUnknownTpn));
}

TEST(CaptureFilter, what_is_no_term_is_said) {
  for (const char* text : {"link", "link=", "link=x", "link=5..3", "direction=up", "direction=", "tpn=-1", "kind=tcp",
                           "kind=", "peer=nobody", "peer=", "dropped=nothing", "dropped=", "channel=3", "=", "rtp"}) {
    CaptureFilter filter;
    std::string why;
    EXPECT_FALSE(filter.parse(std::string("link=1 ") + text, &why)) << text;
    EXPECT_NE(why.find("filter \"" + std::string(text) + "\": a term is link=NUMBERS"), std::string::npos) << why;
  }
}

}  // namespace
}  // namespace ub
