// SPDX-License-Identifier: Apache-2.0
// golden_frames.h - frames as a NIC sent them that shares no code with this project (Linux 6.1, rdma_rxe), between
// 10.77.0.3 ("there") and 10.77.0.2 ("back"). Long runs of equal bytes are written as their count.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/roce/roce_test_util.h"

namespace ub::roce::golden {

inline constexpr char kEthThere[] = "525400a35ecd 52540048011e 0800";
inline constexpr char kEthBack[] = "52540048011e 525400a35ecd 0800";

/// Header in hex, a payload of so many equal bytes, ICRC in hex.
inline Bytes filled(const std::string& head, size_t payload_bytes, const char* icrc) {
  Bytes f = hex(head.c_str());
  f.resize(f.size() + payload_bytes, std::byte{0x7B});
  const Bytes tail = hex(icrc);
  f.insert(f.end(), tail.begin(), tail.end());
  return f;
}

inline Bytes there(const char* rest) { return hex((std::string(kEthThere) + rest).c_str()); }
inline Bytes back(const char* rest) { return hex((std::string(kEthBack) + rest).c_str()); }

inline Bytes send_first() {
  return filled(
      std::string(kEthThere) + "4500042c16ef400040110b340a4d00030a4d0002 c12112b704180000 0000ffff00000011002cd021",
      1024, "5f6d6613");
}
inline Bytes send_middle() {
  return filled(
      std::string(kEthThere) + "4500042c16f0400040110b330a4d00030a4d0002 c12112b704180000 0100ffff00000011002cd022",
      1024, "df196a49");
}
inline Bytes send_last() {
  return filled(
      std::string(kEthThere) + "450003e416f1400040110b7a0a4d00030a4d0002 c12112b703d00000 0200ffff00000011802cd023",
      952, "90126ec0");
}
inline Bytes ack() {
  return back("45000030e65d400040113fc10a4d00020a4d0003 c12112b7001c0000 1100ffff00000011002cd023 1f000001 6354b015");
}
inline Bytes send_only() {
  return there(
      "4500003cffca4000401126480a4d00030a4d0002 e76d12b700280000 0400ffff0000001180e2222f"
      "000055f07707d3700000053000000040 36320f47");
}
/// Two bytes, two of padding.
inline Bytes send_only_padded() {
  return there("450000300089400040112596 0a4d00030a4d0002 c0e112b7001c0000 0420ffff000000128059f7ba 33000000 3db8ff55");
}
inline Bytes write_only() {
  return back(
      "4500004ce76f400040113e930a4d00020a4d0003 c14412b700380000 0a00ffff00000012803bd86e"
      "000055f8325b7000 00000349 00000010 00000000000000000000000000000001 feb7aa8f");
}
inline Bytes read_request() {
  return there(
      "4500003c17ef400040110e240a4d00030a4d0002 c16912b700280000 0c00ffff0000001380f7fdad"
      "000055c70008d000 00000450 000007d0 ab75e8c4");
}
inline Bytes read_reply_only() {
  return there(
      "45000070ffcb4000401126130a4d00030a4d0002 e76d12b7005c0000 1000ffff0000001100692c37 1f000001"
      "72646d612d70696e672d303a204142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f60"
      "6162636465666768696a6b6c6d6e6f7071720066 58d564");
}
inline Bytes fetch_add() {
  return there(
      "4500004818ca400040110d3d0a4d00030a4d0002 c19012b700340000 1400ffff0000001480efc59a"
      "000056430d609000 00000535 0000000000000001 0000000000000000 b4dcd220");
}
inline Bytes atomic_ack() {
  return back(
      "45000038e7d0400040113e460a4d00020a4d0003 c19012b700240000 1200ffff0000001400efc59a"
      "1f000001 482ad585db84b21f 4750143e");
}
inline Bytes ud_send() {
  return filled(std::string(kEthThere) +
                    "450002f01920400040110a3f0a4d00030a4d0002 c15c12b702dc0000 6400ffff0000001500ef4110"
                    "11111111 00000015",
                700, "12296a7b");
}

/// A CM datagram is mostly zeros: the hex goes on with them to 256 bytes.
inline Bytes mad(const std::string& eth, const char* ip_to_deth, const char* mad_hex, const char* icrc) {
  Bytes f = hex((eth + ip_to_deth).c_str());
  Bytes body = hex(mad_hex);
  body.resize(256);
  const Bytes tail = hex(icrc);
  f.insert(f.end(), body.begin(), body.end());
  f.insert(f.end(), tail.begin(), tail.end());
  return f;
}

inline Bytes cm_req() {
  return mad(kEthThere,
             "45000134ffc24000401125580a4d00030a4d0002 d87212b701200000 6400ffff0000000180000000 8001000000000001",
             "0107020300000000 000000028237577e 0010000000000000"
             "7e57378200000000 0000000001061c06 505400fffe48011e 0000000000000000 0000110100000001 000000a0692c37a7"
             "ffff37f0ffffffff 00000000000000000000ffff0a4d0003 00000000000000000000ffff0a4d0002 5a77b00000400098"
             "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
             "0040b1eb 0000000000000000000000000a4d0003 0000000000000000000000000a4d0002",
             "2a46084b");
}
inline Bytes cm_rep() {
  return mad(kEthBack,
             "4500013444b640004011e0640a4d00020a4d0003 d87212b701200000 6400ffff0000000180000000 8001000000000001",
             "0107020300000000 000000028237577e 0013000000000000"
             "c3c3b0107e573782 0000000000001100 00000000e2222f00 010178e0 505400fffea35ecd",
             "e40df4a5");
}
inline Bytes cm_rtu() {
  return mad(kEthThere,
             "45000134ffc94000401125510a4d00030a4d0002 d87212b701200000 6400ffff0000000180000001 8001000000000001",
             "0107020300000000 000000028237577e 0014000000000000 7e573782c3c3b010", "1f39cbf0");
}
inline Bytes cm_dreq() {
  return mad(kEthThere,
             "45000134ffdd40004011253d0a4d00030a4d0002 d87212b701200000 6400ffff0000000180000002 8001000000000001",
             "0107020300000000 000000028237577e 0015000000000000 7e573782c3c3b010 00001100", "3cb5e4aa");
}
inline Bytes cm_drep() {
  return mad(kEthBack,
             "4500013444cb40004011e04f0a4d00020a4d0003 d87212b701200000 6400ffff0000000180000001 8001000000000001",
             "0107020300000000 000000028237577e 0016000000000000 c3c3b0107e573782", "034b9520");
}

/// All of them, with their names.
inline std::vector<std::pair<const char*, Bytes>> all() {
  return {{"send_first", send_first()},
          {"send_middle", send_middle()},
          {"send_last", send_last()},
          {"ack", ack()},
          {"send_only", send_only()},
          {"send_only_padded", send_only_padded()},
          {"write_only", write_only()},
          {"read_request", read_request()},
          {"read_reply_only", read_reply_only()},
          {"fetch_add", fetch_add()},
          {"atomic_ack", atomic_ack()},
          {"ud_send", ud_send()},
          {"cm_req", cm_req()},
          {"cm_rep", cm_rep()},
          {"cm_rtu", cm_rtu()},
          {"cm_dreq", cm_dreq()},
          {"cm_drep", cm_drep()}};
}

}  // namespace ub::roce::golden
