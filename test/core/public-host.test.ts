import { expect, test } from "vitest";
import { isAmong, isPublicHost } from "../../src/core/public-host.ts";

/** The host as the URL parser writes it. */
const hostOf = (url: string) => new URL(url).hostname;

test.each([
  "https://api.openai.com/v1",
  "http://8.8.8.8:8000/v1",
  "https://[2606:4700:4700::1111]/v1",
  "https://[2a01:4f8::1]/v1",
  "https://172.32.0.1/v1",
  "https://100.128.0.1/v1",
  "https://gpu.example./v1",
  "https://localhost.example.com/v1",
  "https://svc.example.com/v1",
  "https://local.ai/v1",
  "https://168.63.129.17/v1",
])("%s is public", (url) => {
  expect(isPublicHost(hostOf(url))).toBe(true);
});

test.each([
  "http://localhost:8000/v1",
  "http://LOCALHOST./v1",
  "http://localhost../v1",
  "http://localhost.localdomain/v1",
  "http://model.localhost/v1",
  "http://printer.local/v1",
  "http://metadata.google.internal/v1",
  "http://gpu/v1",
  "http://vllm.models.svc/v1",
  "http://vllm.models.svc.cluster.local:8000/v1",
  "http://10-0-0-1.models.pod.cluster.local/v1",
  "http://vllm.service.consul/v1",
  "http://host.docker.internal/v1",
  "http://metadata.goog/v1",
  "http://METADATA.GOOG./v1",
  "http://metadata.tencentyun.com/v1",
  // Azure's host, in every spelling.
  "http://168.63.129.16/v1",
  "http://2822734096/v1",
  "http://0xa83f8110/v1",
  "http://0250.077.0201.020/v1",
  "http://168.63.33040/v1",
  "http://%31%36%38.63.129.16/v1",
  "http://１６８。６３。１２９。１６/v1",
  "http://[::ffff:168.63.129.16]/v1",
  "http://[64:ff9b::a83f:8110]/v1",
  // Alibaba's, Oracle's, and AWS's for containers and IPv6.
  "http://100.100.100.200/v1",
  "http://0x646464c8/v1",
  "http://192.0.0.192/v1",
  "http://169.254.170.2/v1",
  "http://[fd00:ec2::254]/v1",
  "http://nas.home.arpa/v1",
  "http://127.0.0.1/v1",
  "http://127.1/v1",
  "http://2130706433/v1",
  "http://0x7f000001/v1",
  "http://0177.0.0.1/v1",
  "http://0/v1",
  "http://10.1.2.3/v1",
  "http://100.64.0.1/v1",
  "http://169.254.169.254/v1",
  "http://172.16.0.1/v1",
  "http://172.31.255.255/v1",
  "http://192.168.1.1/v1",
  "http://198.19.0.1/v1",
  "http://224.0.0.1/v1",
  "http://255.255.255.255/v1",
  "http://[::]/v1",
  "http://[::1]/v1",
  "http://[::ffff:127.0.0.1]/v1",
  "http://[::ffff:8.8.8.8]/v1",
  "http://[64:ff9b::7f00:1]/v1",
  "http://[fc00::1]/v1",
  "http://[fd12:3456::1]/v1",
  "http://[fe80::1]/v1",
  "http://[ff02::1]/v1",
  "http://[2001:db8::1]/v1",
  "http://[2001::1]/v1",
  "http://[2002:7f00:1::]/v1",
  // Trailing dots, short forms, every base, and Unicode's other digits.
  "http://127.0.0.1./v1",
  "http://127.65530/v1",
  "http://127.0.1/v1",
  "http://017700000001/v1",
  "http://0x7f.0x0.0x0.0x1/v1",
  "http://0x7F.1/v1",
  "http://127.0.0x1/v1",
  "http://①②⑦.⓪.⓪.①/v1",
  "http://１２７.０.０.１/v1",
  "http://127。0。0。1/v1",
  "http://127%2e0%2e0%2e1/v1",
  "http://0.0.0.0/v1",
  "http://0x0/v1",
  "http://10.0x10/v1",
  "http://3232235777/v1",
  "http://0xa9fea9fe/v1",
  "http://0251.0376.0251.0376/v1",
  "http://169.254.43518/v1",
  "http://[::ffff:a9fe:a9fe]/v1",
  "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/v1",
  "http://ｌｏｃａｌｈｏｓｔ/v1",
  "http://local\u00adhost/v1",
  "http://loc%61lhost/v1",
  "http://a.b.localhost./v1",
  "http://ip6-localhost/v1",
  "http://gpu.internal./v1",
  "http://printer.LOCAL/v1",
  "http://kubernetes.default.svc/v1",
  // IPv4 inside IPv6: mapped, compatible, translated, NAT64 of both prefixes, 6to4, Teredo.
  "http://[::127.0.0.1]/v1",
  "http://[::ffff:0:127.0.0.1]/v1",
  "http://[0:0:0:0:0:ffff:7f00:1]/v1",
  "http://[64:ff9b::169.254.169.254]/v1",
  "http://[64:ff9b:1::10.0.0.1]/v1",
  "http://[2002:a9fe:a9fe::]/v1",
  "http://[2002:0a00:0001::1]/v1",
  "http://[2001:0:a9fe:a9fe::1]/v1",
  "http://[2001:10::1]/v1",
  "http://[3fff::1]/v1",
  "http://[100::1]/v1",
  "http://[fec0::1]/v1",
  "http://[febf::1]/v1",
  "http://[FD00::1]/v1",
])("%s is not public", (url) => {
  expect(isPublicHost(hostOf(url))).toBe(false);
});

test.each([
  "http://[fe80::1%25eth0]/",
  "http://[fe80::1%eth0]/",
  "http://256.0.0.1/",
  "http://127.0.0.1.5/",
  "http://0x/",
])("%s is not an address, or not one that may be called", (url) => {
  const parsed = URL.parse(url);
  expect(parsed === null || !isPublicHost(parsed.hostname)).toBe(true);
});

test.each([
  ["gpu.example", "https://gpu.example/v1", true],
  ["gpu.example", "https://GPU.example.:8443/v1", true],
  ["gpu.example", "https://a.gpu.example/v1", false],
  ["gpu.example", "https://notgpu.example/v1", false],
  ["*.models.example", "https://a.b.models.example/v1", true],
  ["*.models.example", "https://models.example/v1", false],
  ["*.models.example", "https://evilmodels.example/v1", false],
  ["*.models.example", "https://models.example.evil.example/v1", false],
  ["8.8.8.8", "https://0x08080808/v1", true],
])("%s allows %s: %s", (host, url, allowed) => {
  expect(isAmong(["other.example", host], hostOf(url))).toBe(allowed);
  expect(isAmong([], hostOf(url))).toBe(false);
});
