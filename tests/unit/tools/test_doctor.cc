// SPDX-License-Identifier: Apache-2.0
//
// What the doctor concludes from facts; the facts are invented.
#include <gtest/gtest.h>

#include <cerrno>

#include "tools/admin/doctor.h"
#include "tools/admin/doctor_firewall.h"
#include "tools/admin/doctor_wire.h"

namespace ub::tools {
namespace {

HostFacts good_host() {
  HostFacts f;
  AddressFacts a;
  a.eid = a.ip = "10.0.0.1";
  a.interface = "eth0";
  a.interface_mtu = 1500;
  f.addresses.push_back(a);
  f.directory.path = "/run/user/1000/softub-1000-1";
  f.directory.parent_writable = true;
  f.limits = {1024, 4096, 8 << 20, 65530};
  f.buffers = {4 << 20, 4 << 20, ""};
  f.cpus.allowed = {0, 1};
  f.cpus.allowed_nodes = {0};
  f.cpus.online = 2;
  return f;
}

PeerFacts good_peer() {
  PeerFacts f;
  f.wanted = f.address = "10.0.1.2";
  f.route.source = "10.0.0.1";
  f.route.interface = "eth0";
  f.route.interface_mtu = 1500;
  f.peer_listens = true;
  f.peer_eids = {"10.0.1.2"};
  f.own_payload = f.peer_payload = 1024;
  f.probe.port = 4793;
  f.ub.port = 4792;
  for (PortFacts* p : {&f.probe, &f.ub}) {
    p->answered = true;
    p->source = p->seen_source = "10.0.0.1:4792";
    p->destination = p->seen_destination = "10.0.1.2";
  }
  for (uint32_t size : {576U, 1148U, 1500U}) f.sizes.push_back({size, true, true, true});
  return f;
}

void add_sizes(PeerFacts* f, bool pass) {
  for (uint32_t size : {2211U, 4259U, 8355U, 9000U}) f->sizes.push_back({size, true, pass, pass});
}

Finding find(const Findings& findings, const std::string& item) {
  for (const Finding& f : findings)
    if (f.item == item) return f;
  ADD_FAILURE() << "nothing about " << item;
  return {};
}

Verdict worst(const Findings& findings) {
  Verdict v = Verdict::kOk;
  for (const Finding& f : findings) v = std::max(v, f.verdict);
  return v;
}

bool says(const Finding& f, const std::string& text) {
  return f.found.find(text) != std::string::npos || f.advice.find(text) != std::string::npos;
}

TEST(Host, good_one_has_no_warning) {
  HostFacts f = good_host();
  f.firewall.rules.push_back({"nft", ""});
  EXPECT_EQ(worst(judge_host(f, Config{})), Verdict::kOk);
}

TEST(Host, whatever_is_not_ok_has_an_advice) {
  HostFacts f = good_host();
  f.config_error = "a\nb";
  f.addresses[0].loopback = true;
  f.addresses[0].bind_error = EADDRINUSE;
  f.addresses[0].echo = false;
  f.buffers.receive = 1;
  f.kernel = {false, "no"};
  f.directory.parent_writable = false;
  f.limits = {64, 64, 0, 1};
  f.cpus.allowed = {0};
  Config c;
  c.port.kinds = {"udp", "shm", "dpdk"};
  for (const Finding& r : judge_host(f, c)) {
    EXPECT_TRUE(r.verdict == Verdict::kOk || !r.advice.empty()) << r.item << ": " << r.found;
    EXPECT_EQ(r.found.find('\n'), std::string::npos) << r.item;
  }
}

TEST(Address, payload_follows_the_mtu) {
  HostFacts f = good_host();
  EXPECT_TRUE(says(find(judge_host(f, Config{}), "EID 10.0.0.1"), "1024 bytes"));
  f.addresses[0].interface_mtu = 9000;
  EXPECT_TRUE(says(find(judge_host(f, Config{}), "EID 10.0.0.1"), "8192 bytes"));
}

TEST(Address, configured_payload_must_fit) {
  Config c;
  c.port.mtu = 4096;
  const Finding r = find(judge_host(good_host(), c), "EID 10.0.0.1");
  EXPECT_EQ(r.verdict, Verdict::kProblem);
  EXPECT_TRUE(says(r, "port.mtu = 1024"));
}

TEST(Port, ours_is_fine_a_stranger_is_not) {
  HostFacts f = good_host();
  f.addresses[0].bind_error = EADDRINUSE;
  f.addresses[0].holder = "pid 7, x";
  f.addresses[0].holder_is_ours = true;
  EXPECT_EQ(find(judge_host(f, Config{}), "UDP port 4792").verdict, Verdict::kOk);
  f.addresses[0].holder_is_ours = false;
  EXPECT_EQ(find(judge_host(f, Config{}), "UDP port 4792").verdict, Verdict::kWarning);
}

TEST(Placement, daemon) {
  HostFacts f = good_host();
  Config c;
  c.placement.mode = "daemon";
  f.daemon.socket = {"/run/a.sock", false, ""};
  EXPECT_EQ(find(judge_host(f, c), "placement").verdict, Verdict::kProblem);
  f.daemon.socket = {"/run/a.sock", true, "Permission denied"};
  EXPECT_EQ(find(judge_host(f, c), "placement").verdict, Verdict::kProblem);
  f.daemon.socket.error.clear();
  EXPECT_EQ(find(judge_host(f, c), "placement").verdict, Verdict::kOk);
  c.placement.mode = "auto";
  f.daemon.socket.exists = false;
  EXPECT_EQ(find(judge_host(f, c), "placement").verdict, Verdict::kOk);
}

TEST(Cpus, cores_that_may_not_be_used) {
  HostFacts f = good_host();
  Config c;
  c.port.kinds = {"dpdk"};
  c.dpdk.arguments = {"-l", "1-3"};
  const Finding r = find(judge_host(f, c), "CPUs");
  EXPECT_EQ(r.verdict, Verdict::kProblem);
  EXPECT_TRUE(says(r, "2, 3"));
  f.daemon.cores = {9};
  c.port.kinds = {"udp"};
  EXPECT_TRUE(says(find(judge_host(f, c), "CPUs"), "daemon.cores has 9"));
}

TEST(Hugepages, only_where_they_are_asked_for) {
  Config c;
  c.port.kinds = {"dpdk"};
  EXPECT_EQ(find(judge_host(good_host(), c), "hugepages").verdict, Verdict::kOk);
  c.dpdk.arguments = {"--in-memory"};
  EXPECT_EQ(find(judge_host(good_host(), c), "hugepages").verdict, Verdict::kProblem);
  HostFacts f = good_host();
  f.hugepages = {{2048, 256, 200}};
  EXPECT_EQ(find(judge_host(f, c), "hugepages").verdict, Verdict::kOk);
}

TEST(Device, names) {
  using Kind = DeviceName::Kind;
  EXPECT_EQ(parse_device("0000:01:00.0").pci, "0000:01:00.0");
  EXPECT_EQ(parse_device("01:00.1,mprq_en=1").pci, "0000:01:00.1");
  EXPECT_EQ(parse_device("net_af_xdp0,iface=eth1").kind, Kind::kAfXdp);
  EXPECT_EQ(parse_device("net_af_packet3,iface=eth1").interface, "eth1");
  EXPECT_EQ(parse_device("net_memif0,role=server,socket=/a/b,socket-abstract=no").socket, "/a/b");
  EXPECT_EQ(parse_device("net_memif0,socket=/a/b").socket, "");
  EXPECT_EQ(parse_device("net_vhost0,iface=/a/v").socket, "/a/v");
  EXPECT_EQ(parse_device("net_ring0").kind, Kind::kOther);
  for (const char* bad : {"", "eth1", "0000:01:00", "net_af_xdp0,eth1"}) {
    EXPECT_EQ(parse_device(bad).kind, Kind::kBad) << bad;
    EXPECT_FALSE(parse_device(bad).error.empty());
  }
}

TEST(Device, pci_drivers) {
  HostFacts f = good_host();
  Config c;
  c.port.kinds = {"dpdk"};
  f.dpdk.devices.resize(1);
  DpdkDeviceFacts& d = f.dpdk.devices[0];
  d.devargs = "0000:01:00.0";
  auto device = [&] { return find(judge_host(f, c), "DPDK device"); };
  EXPECT_TRUE(says(device(), "does not exist"));
  d.present = true;
  d.driver = "ice";
  EXPECT_TRUE(says(device(), "--bind=vfio-pci 0000:01:00.0"));
  d.driver = "mlx5_core";
  EXPECT_EQ(device().verdict, Verdict::kOk);
  d.driver = "vfio-pci";
  EXPECT_TRUE(says(device(), "modprobe"));
  d.vfio = true;
  EXPECT_TRUE(says(device(), "IOMMU"));
  d.iommu_group = "12";
  d.group_error = "Permission denied";
  EXPECT_TRUE(says(device(), "chown $USER /dev/vfio/12"));
  d.group_error.clear();
  EXPECT_EQ(device().verdict, Verdict::kOk);
}

TEST(Device, each_is_judged) {
  HostFacts f = good_host();
  Config c;
  c.port.kinds = {"dpdk"};
  EXPECT_EQ(find(judge_host(f, c), "DPDK device").verdict, Verdict::kProblem) << "none";
  f.dpdk.devices.resize(2);
  f.dpdk.devices[0].devargs = "net_memif0,role=client";
  f.dpdk.devices[1].devargs = "net_af_packet0,iface=eth7";
  size_t good = 0, bad = 0;
  for (const Finding& r : judge_host(f, c)) {
    if (r.item != "DPDK device") continue;
    ++(r.verdict == Verdict::kProblem ? bad : good);
    EXPECT_TRUE(r.verdict != Verdict::kProblem || says(r, "eth7"));
  }
  EXPECT_EQ(good, 1u);
  EXPECT_EQ(bad, 1u);
  f.dpdk.assignment_error = "no device of the name x";
  EXPECT_TRUE(says(find(judge_host(f, c), "DPDK addresses"), "of the name x"));
}

// ---- firewall --------------------------------------------------------------------------------------------------

Finding firewall(const std::string& tool, const std::string& text) {
  FirewallFacts f;
  f.rules.push_back({tool, text});
  return judge_firewall(f, 4792);
}

std::string nft(const std::string& policy, const std::string& rules) {
  return "table inet t { # handle 1\n\tchain in { # handle 1\n\t\ttype filter hook input priority filter; policy " +
         policy + ";\n" + rules + "\t}\n}\n";
}

TEST(Firewall, nft) {
  EXPECT_EQ(firewall("nft", "").verdict, Verdict::kOk);
  EXPECT_EQ(firewall("nft", nft("accept", "")).verdict, Verdict::kOk);
  EXPECT_EQ(firewall("nft", nft("accept", "\t\ttcp dport 4792 drop # handle 2\n")).verdict, Verdict::kOk);
  EXPECT_EQ(firewall("nft", nft("accept", "\t\tudp dport 53 drop # handle 4792\n")).verdict, Verdict::kOk);

  Finding r = firewall("nft", nft("accept", "\t\tudp dport 4000-5000 drop # handle 7\n"));
  EXPECT_EQ(r.verdict, Verdict::kProblem);
  EXPECT_EQ(r.advice, "as root: nft delete rule inet t in handle 7");

  r = firewall("nft", nft("drop", "\t\ttcp dport 22 accept # handle 7\n"));
  EXPECT_EQ(r.verdict, Verdict::kWarning);
  EXPECT_EQ(r.advice, "as root: nft insert rule inet t in udp dport 4792 accept");
  EXPECT_EQ(firewall("nft", nft("drop", "\t\tudp dport { 53, 4792 } accept # handle 7\n")).verdict, Verdict::kOk);
  EXPECT_EQ(firewall("nft", nft("accept", "\t\treject with icmpx admin-prohibited # handle 9\n")).verdict,
            Verdict::kWarning);
}

TEST(Firewall, iptables) {
  EXPECT_EQ(firewall("iptables", ":INPUT ACCEPT [0:0]\n").verdict, Verdict::kOk);
  Finding r = firewall("iptables", ":INPUT ACCEPT [0:0]\n-A INPUT -p udp -m udp --dport 4792 -j DROP\n");
  EXPECT_EQ(r.verdict, Verdict::kProblem);
  EXPECT_EQ(r.advice, "as root: iptables -D INPUT -p udp -m udp --dport 4792 -j DROP");
  r = firewall("iptables", ":INPUT DROP [0:0]\n-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\n");
  EXPECT_EQ(r.verdict, Verdict::kWarning);
  EXPECT_EQ(r.advice, "as root: iptables -I INPUT -p udp --dport 4792 -j ACCEPT");
  r = firewall("iptables", ":INPUT DROP [0:0]\n-A INPUT -p udp -m multiport --dports 53,4792 -j ACCEPT\n");
  EXPECT_EQ(r.verdict, Verdict::kOk);
}

TEST(Firewall, unreadable_is_not_ok) {
  EXPECT_EQ(judge_firewall({}, 4792).verdict, Verdict::kSkipped);
  EXPECT_TRUE(says(judge_firewall({}, 4792), "root"));
}

// ---- peer ------------------------------------------------------------------------------------------------------

TEST(Peer, good_one_has_no_warning) { EXPECT_EQ(worst(judge_peer(good_peer())), Verdict::kOk); }

TEST(Peer, only_the_port_of_ub_is_blocked) {
  PeerFacts f = good_peer();
  f.ub.answered = false;
  const Finding r = find(judge_peer(f), "UDP 4792 of the peer");
  EXPECT_EQ(r.verdict, Verdict::kProblem);
  EXPECT_TRUE(says(r, "blocked"));
  f.peer_holder = "pid 5, x";
  EXPECT_EQ(find(judge_peer(f), "UDP 4792 of the peer").verdict, Verdict::kSkipped);
}

TEST(Peer, silence) {
  PeerFacts f = good_peer();
  f.probe.answered = f.ub.answered = false;
  EXPECT_TRUE(says(find(judge_peer(f), "peer answers"), "UDP is blocked"));
  f.tcp_error = "Connection refused";
  EXPECT_TRUE(says(find(judge_peer(f), "peer answers"), "no doctor listens"));
  f.tcp_error = "no answer";
  EXPECT_TRUE(says(find(judge_peer(f), "peer answers"), "nothing comes back"));
}

TEST(Peer, translation) {
  PeerFacts f = good_peer();
  f.ub.seen_source = "10.0.0.1:50000";
  EXPECT_EQ(find(judge_peer(f), "NAT").verdict, Verdict::kProblem);
  f = good_peer();
  f.ub.seen_destination = "172.16.0.2";
  EXPECT_EQ(find(judge_peer(f), "NAT").verdict, Verdict::kProblem);
}

TEST(Peer, path_mtu) {
  PeerFacts f = good_peer();
  add_sizes(&f, true);
  EXPECT_EQ(find(judge_peer(f), "path MTU").verdict, Verdict::kOk);

  f = good_peer();
  add_sizes(&f, false);
  EXPECT_TRUE(says(find(judge_peer(f), "path MTU"), "black hole"));
  f.route.interface_mtu = 9000;
  f.route.kernel_mtu = 1500;
  EXPECT_EQ(find(judge_peer(f), "path MTU").verdict, Verdict::kOk);  // both want 1024
  f.own_payload = f.peer_payload = 8192;
  const Finding r = find(judge_peer(f), "path MTU");
  EXPECT_EQ(r.verdict, Verdict::kWarning);
  EXPECT_TRUE(says(r, "port.mtu = 1024"));

  f.sizes[1].back = f.sizes[2].back = false;  // 1148 arrives, its answer does not
  EXPECT_EQ(find(judge_peer(f), "path MTU").verdict, Verdict::kProblem);
  EXPECT_TRUE(says(find(judge_peer(f), "path MTU"), "do not come back"));
}

TEST(Peer, another_address_than_its_eid) {
  PeerFacts f = good_peer();
  f.peer_eids = {"192.168.0.2"};
  const Finding r = find(judge_peer(f), "EIDs of the peer");
  EXPECT_EQ(r.verdict, Verdict::kWarning);
  EXPECT_TRUE(says(r, "device.eids = [\"10.0.1.2\"]"));
}

// ---- words on the wire -----------------------------------------------------------------------------------------

TEST(Wire, round_trip) {
  const std::string q = write_question({7, 200}, 1000);
  EXPECT_EQ(q.size(), 1000U);
  ASSERT_TRUE(read_question(q));
  EXPECT_EQ(read_question(q)->nonce, 7U);
  EXPECT_EQ(read_question(q)->answer_bytes, 200U);
  const auto a = read_answer(write_answer({9, "[fd00::1]:4792", "fd00::2"}, kSmallProbe));
  ASSERT_TRUE(a);
  EXPECT_EQ(a->asker, "[fd00::1]:4792");
  EXPECT_EQ(a->destination, "fd00::2");
}

TEST(Wire, nobody_is_flooded_through_a_responder) {
  EXPECT_FALSE(read_question(write_question({7, 1001}, 1000)));
  EXPECT_FALSE(read_question("softub-doctor 2 ask 7 1"));
  EXPECT_FALSE(read_question("softub-doctor 1 answer 7 1"));
  EXPECT_FALSE(read_question(""));
  EXPECT_FALSE(read_answer("softub-doctor 1 answer 7"));
}

}  // namespace
}  // namespace ub::tools
