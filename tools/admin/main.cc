// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <vector>

#include "tools/admin/commands.h"
#include "tools/admin/doctor.h"

namespace {

int run(int argc, char** argv) {
  using namespace ub::tools;
  CLI::App app("urma_admin - look at the configuration, the devices and the running instances of SoftUB", "urma_admin");
  // "-1" would be taken for a very large number.
  const auto no_minus = [](std::string& text) -> std::string {
    return text.starts_with('-') ? "a size is not negative" : "";
  };
  const CLI::Validator not_empty([](std::string& text) { return text.empty() ? "a path has at least one letter" : ""; },
                                 "");
  const CLI::Validator file_size = CLI::Validator(no_minus, "") & CLI::AsSizeValue(false);
  app.set_version_flag("--version", std::string("urma_admin ") + UB_VERSION);
  app.footer(R"(Examples:
  urma_admin config                     every key: value, where it comes from, default, range, meaning
  urma_admin config port. --changed     keys that contain "port." and are not at their default
  urma_admin devices --caps             what applications see
  urma_admin list                       the instances of this user on this host
  urma_admin names                      the names of segments that they have published
  urma_admin show counters              of the only instance
  urma_admin show channels --instance 10.0.0.1-4792      or a pid, or a uasid
  urma_admin show events -i 10.0.0.1-4792    what happened last, also in one that was killed
  urma_admin trace add 1000 channel=3   the next 1000 steps of packets and requests of channel 3; then trace show
  urma_admin pcap on run.pcapng         every frame from now on, for Wireshark, until: urma_admin pcap off
  urma_admin latency on                 measure how long stages take inside the instance; then latency show
  urma_admin telemetry /softub/work     what DPDK's telemetry socket would say; / lists all commands
  urma_admin top                        what the instances do, live: q quits, s sorts, p pauses, j and k scroll
  urma_admin top --once --interval 5    one page of plain text, with the rates of five seconds
  urma_admin export                     a Prometheus exporter: http://127.0.0.1:9464/metrics
  urma_admin export --once > page.prom  the same page as a file, for the textfile collector of the node exporter
  urma_admin doctor                     what this host lacks, and what to do about it
  urma_admin doctor --listen            on one host, to be asked by the doctor of the other one
  urma_admin doctor --peer 192.0.2.2    on the other: route, blocked ports, path MTU, NAT
Exit codes: 0 good, 1 failed, nothing found, or a problem (doctor), 2 wrong usage.)");
  app.require_subcommand(1);
  bool json = false, changed = false, caps = false, all = false;
  std::string filter, what;
  InstanceSelection selection;
  ExportOptions export_options;
  TopOptions top_options;
  DoctorOptions doctor_options;
  doctor_options.port = kDoctorPort;

  auto* config = app.add_subcommand("config", "every configuration key and where its value comes from");
  config->add_option("filter", filter, "only keys that contain this text");
  config->add_flag("--changed", changed, "only keys that are not at their default");
  auto* devices = app.add_subcommand("devices", "devices, their EIDs and ports");
  devices->add_flag("-c,--caps", caps, "capabilities, too");
  auto* list = app.add_subcommand("list", "instances on this host");
  auto* names = app.add_subcommand("names", "names of segments that programs of this host have published");
  auto* show = app.add_subcommand("show", "one running instance");
  show->add_option("what", what, "objects, channels, pools, segments, counters, events, work, or apps of a daemon")
      ->required()
      ->check(CLI::IsMember({"objects", "channels", "pools", "segments", "counters", "events", "work", "apps"}));
  show->add_flag("--all", all, "counters and counts of channels that are 0, too");
  TraceWish trace_wish;
  auto* trace = app.add_subcommand("trace", "the way of packets and requests through a running instance");
  trace->require_subcommand(1);
  auto* trace_add = trace->add_subcommand("add", "take the next N notes, in place of those of an earlier trace");
  trace_add->add_option("N", trace_wish.notes, "how many, 1 to 1000000")->required();
  trace_add->add_option("filter", trace_wish.filter,
                        "terms that all have to hold: channel=3, packet=100..200, stage=kPacketsLost,kTimer* and such");
  trace->add_subcommand("show", "print them");
  trace->add_subcommand("status", "how many there are, and whether more come");
  trace->add_subcommand("stop", "take no more");
  trace->add_subcommand("clear", "take no more, and forget them");
  auto* latency = app.add_subcommand("latency", "how long stages take inside a running instance");
  latency->require_subcommand(1);
  latency->add_subcommand("on", "measure from now on; what was measured before is forgotten");
  latency->add_subcommand("off", "measure no more, and keep what there is");
  latency->add_subcommand("show", "print the times in nanoseconds, by stage and class of traffic");
  latency->add_subcommand("clear", "forget what was measured");
  std::string request = "/";
  auto* telemetry = app.add_subcommand("telemetry", "what a running instance says of itself, as DPDK's telemetry does");
  telemetry->add_option("command", request, "such as /softub/counters or /softub/channels,20; / lists all")
      ->capture_default_str();
  telemetry->add_option("-i,--instance", selection.instance, "its name (see list), pid or uasid");
  telemetry->add_option("--dir", selection.directory, "statistics directory; default: from the configuration");
  std::vector<CLI::App*> asking = trace->get_subcommands({});
  for (auto* s : latency->get_subcommands({})) asking.push_back(s);
  for (auto* s : asking) {
    s->add_option("-i,--instance", selection.instance, "its name (see list), pid or uasid");
    s->add_option("--dir", selection.directory, "statistics directory; default: from the configuration");
    s->add_flag("--json", json, "as JSON");
  }
  CaptureWish capture_wish;
  capture_wish.bytes = 1 << 30;
  auto* pcap = app.add_subcommand("pcap", "the frames of a running instance, into a pcap-ng file");
  pcap->require_subcommand(1);
  auto* pcap_on = pcap->add_subcommand("on", "begin; the file is made by the instance");
  pcap_on->add_option("FILE", capture_wish.path, "where to; it must not exist")->required()->check(not_empty);
  pcap_on->add_option("filter", capture_wish.filter,
                      "terms that all have to hold: link=1,3..5, direction=in, tpn=2424835, kind=record,rtp, "
                      "peer=10.0.0.2, dropped=rx.drop.*");
  pcap_on->add_option("--size", capture_wish.bytes, "bytes of a file at most, such as 100M; 0: no limit")
      ->transform(file_size)
      ->default_str("1G");
  pcap_on->add_option("--files", capture_wish.files, "go on in another file when one is full, and keep the last N")
      ->type_name("N")
      ->check(CLI::Range(1, 10000));
  pcap_on->add_option("--snap", capture_wish.snap, "keep so many bytes of each frame; 0: all")->type_name("BYTES");
  pcap->add_subcommand("off", "end; the file is complete then");
  pcap->add_subcommand("status", "how much there is, and what could not be kept");
  for (auto* s : pcap->get_subcommands({})) {
    s->add_option("-i,--instance", selection.instance, "its name (see list), pid or uasid");
    s->add_option("--dir", selection.directory, "statistics directory; default: from the configuration");
  }
  RecordWish record_wish;
  record_wish.bytes = 256 << 20;
  auto* record =
      app.add_subcommand("record", "all that enters the protocol core of a running instance, for urma_replay");
  record->require_subcommand(1);
  auto* record_on = record->add_subcommand("on", "begin; the file is made by the instance");
  record_on->add_option("FILE", record_wish.path, "where to; it must not exist")->required()->check(not_empty);
  record_on->add_option("--size", record_wish.bytes, "bytes of a file at most, such as 100M")
      ->transform(file_size)
      ->default_str("256M");
  record_on->add_option("--files", record_wish.files,
                        "go on in FILE.1, FILE.2 and so on when one is full, and keep the last N; 0: keep all")
      ->type_name("N")
      ->check(CLI::Range(0, 10000))
      ->capture_default_str();
  record_on->add_flag("--headers", record_wish.headers,
                      "write the headers of frames that are sent, so that a replay which differs says in what byte");
  record_on->add_flag("--payload", record_wish.payload,
                      "write payload, too, which is left out otherwise: the file has all data that passes the NIC");
  record->add_subcommand("off", "end");
  record->add_subcommand("status", "how much there is, and why it ended");
  for (auto* s : record->get_subcommands({})) {
    s->add_option("-i,--instance", selection.instance, "its name (see list), pid or uasid");
    s->add_option("--dir", selection.directory, "statistics directory; default: from the configuration");
  }
  auto* top = app.add_subcommand("top", "what running instances do, on a page that is renewed");
  top->add_option("--interval", top_options.interval_s, "seconds between two pages, 0.1 to 3600")
      ->capture_default_str();
  top->add_flag("--once", top_options.once, "one page of plain text, as where the output is no terminal");
  for (auto* s : {show, top}) s->add_option("-i,--instance", selection.instance, "its name (see list), pid or uasid");
  auto* exporter = app.add_subcommand("export", "the statistics of running instances for Prometheus");
  exporter->add_option("--port", export_options.port, "TCP port; 0: any free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  exporter->add_option("--bind", export_options.bind, "IPv4 address to listen on; 0.0.0.0: of every interface")
      ->check(CLI::Validator(
          [](std::string& text) { return is_ipv4_address(text) ? "" : text + " is no IPv4 address"; }, "IPV4"))
      ->capture_default_str();
  exporter->add_option("--channels", export_options.channels, "channels of each instance that have metrics, at most")
      ->check(CLI::Range(0, 512))
      ->capture_default_str();
  exporter->add_flag("--once", export_options.once, "print the page, and end");
  for (auto* s : {list, names, show, top, exporter}) {
    s->add_option("--dir", selection.directory, "statistics directory; default: from the configuration");
  }
  auto* doctor = app.add_subcommand("doctor", "what is missing here for two hosts to talk");
  auto* listen = doctor->add_flag("--listen", doctor_options.listen, "answer the doctor of another host, until Ctrl-C");
  doctor->add_option("--peer", doctor_options.peer, "name or address of a host where a doctor listens")
      ->excludes(listen);
  doctor->add_option("--port", doctor_options.port, "UDP and TCP port of the listening doctor")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  for (auto* s : {config, devices, list, names, show, doctor}) s->add_flag("--json", json, "as JSON");

  try {
    app.parse(argc, argv);
    if (!(top_options.interval_s >= 0.1 && top_options.interval_s <= 3600)) {  // so that "nan" is refused, too
      throw CLI::ValidationError("--interval", "seconds, 0.1 to 3600");
    }
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  try {
    if (config->parsed()) return show_config(filter, changed, json);
    if (devices->parsed()) return show_devices(caps, json);
    doctor_options.json = json;
    if (doctor->parsed()) return examine(doctor_options);
    if (list->parsed()) return list_instances(selection, json);
    if (names->parsed()) return list_names(selection, json);
    if (trace->parsed()) {
      trace_wish.verb = trace->get_subcommands().front()->get_name();
      return trace_instance(selection, trace_wish, json);
    }
    if (pcap->parsed()) {
      capture_wish.verb = pcap->get_subcommands().front()->get_name();
      return capture_instance(selection, capture_wish);
    }
    if (record->parsed()) {
      record_wish.verb = record->get_subcommands().front()->get_name();
      return record_instance(selection, record_wish);
    }
    if (latency->parsed()) return measure_latency(selection, latency->get_subcommands().front()->get_name(), json);
    if (telemetry->parsed()) return ask_telemetry(selection, request);
    if (top->parsed()) return show_top(selection, top_options);
    if (exporter->parsed()) return export_metrics(selection, export_options);
    return show_instance(selection, what, all, json);
  } catch (const std::exception& e) {
    fmt::print(stderr, "urma_admin: {}\n", e.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int status = run(argc, argv);
  if (std::fflush(stdout) == 0) return status;
  std::perror("urma_admin: cannot print");  // somebody relies on it
  return status == 0 ? 1 : status;
}
