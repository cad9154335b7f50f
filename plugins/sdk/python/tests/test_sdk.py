import json
import unittest

from componentize_py_types import Err
from tollhouse_plugin import cache, faults, http, log, settings, vault
from tollhouse_plugin.testing import FakeHost
from tollhouse_plugin.text import code, short
from tollhouse_plugin.tool import packed
from wit_world.imports.log import Level
from wit_world.imports.types import Fault, FaultCategory


class Sdk(unittest.TestCase):
    def fault(self, call) -> Fault:
        with self.assertRaises(Err) as raised:
            call()
        return raised.exception.value

    def test_personal_data_and_tokens_are_removed(self) -> None:
        text = "Customer ada@example.com (+2348012345678) has no AUTH_uh8bcl3zbn, try\n again in 5 min"
        self.assertEqual(short(text), "Customer [...] [...] has no [...] try again in 5 min")
        self.assertEqual(len(short("no " * 500)), 163)
        self.assertEqual(code("missing params\n<b>"), "missingparamsb")

    def test_urls_are_joined_by_one_slash_and_values_are_encoded(self) -> None:
        self.assertEqual(http.join("https://a.test/", "/x"), "https://a.test/x")
        self.assertEqual(http.encode("a/../b?c=1&é'"), "a%2F..%2Fb%3Fc%3D1%26%C3%A9%27")

    def test_form_fields_are_percent_encoded(self) -> None:
        host = FakeHost().answer("POST", "/x", 200).install()
        http.post("https://a.test/x").form({"To": "+234", "Body": "a&To=b c"}).send()
        self.assertEqual(host.requests[0].body, "To=%2B234&Body=a%26To%3Db%20c")

    def test_placeholders_are_replaced_and_requests_are_recorded(self) -> None:
        host = FakeHost().secret("token", "t0p").setting("user", "ada").answer("POST", "/x", 201).answer("POST", "/x", 409).install()
        token = vault.secret("token")
        self.assertNotIn("t0p", token)
        basic = vault.basic("user", "token")
        send = lambda: http.post("https://a.test/x?q=1").basic(basic).json({"key": token}).send().status
        self.assertEqual([send(), send(), send()], [201, 409, 409])
        self.assertEqual(json.loads(host.requests[0].body), {"key": "t0p"})
        self.assertEqual(host.requests[0].header("Authorization"), "Basic YWRhOnQwcA==")
        with self.assertRaisesRegex(AssertionError, "no response for GET"):
            http.get("https://a.test/y").send()

    def test_a_template_is_transformed_with_its_secrets(self) -> None:
        manifest = {
            "secrets": {"pass": {"to": ["a.test"], "in": ["body"]}, "key": {}},
            "examples": {"answers": [{"to": "POST /x", "body": {}}]},
        }
        host = FakeHost().examples(manifest).secret("pass", "p4ss").setting("certificate", "PEM").install()
        template = f"174379{vault.secret('pass')}20210628"
        body = {
            "password": vault.transform(template, "base64"),
            "hash": vault.transform(template, "sha256", "hex"),
            "signature": vault.transform(template, ("rsa-sha256", "key")),
            "encrypted": vault.transform(template, ("rsa-encrypt", "certificate")),
        }
        http.post("https://a.test/x").json(body).send()
        hash = "1fc92f34b72bc5c33c087deb4e63bb91e0f4fdca5ec86375b5be4dbeaed3bae7"
        sent = {
            "password": "MTc0Mzc5cDRzczIwMjEwNjI4",
            "hash": hash,
            "signature": f"rsa-sha256(key, {hash})",
            "encrypted": "rsa-encrypt(certificate, 174379p4ss20210628)",
        }
        self.assertEqual(json.loads(host.requests[0].body), sent)
        with self.assertRaisesRegex(AssertionError, "the secret pass is in"):
            http.post("https://a.test/x").bearer(body["password"]).send()
        self.assertEqual(self.fault(lambda: vault.transform(template, "sha256")).category, FaultCategory.MISCONFIGURED)

    def test_a_secret_is_sent_only_where_the_manifest_binds_it(self) -> None:
        manifest = {
            "secrets": {"key": {"to": ["base_url", "b.test"], "in": ["header:x-key", "body"]}, "other": {}},
            "settings": {"base_url": {"kind": "url", "default": "https://a.test/v1"}},
            "examples": {"answers": [{"to": "GET /x", "body": {}}, {"to": "POST /x", "body": {}}]},
        }
        url = "https://a.test/x"
        for name, sent, request in [
            ("key", True, lambda key: http.get(url).header("X-Key", key)),
            ("key", True, lambda key: http.post("https://b.test/x").body(key.encode())),
            ("key", False, lambda key: http.get(url).bearer(key)),
            ("key", False, lambda key: http.get("https://c.test/x").header("x-key", key)),
            ("key", False, lambda key: http.get(f"{url}?key={http.encode(key)}")),
            ("key", False, lambda key: http.get(url).header(key, "1")),
            ("other", False, lambda key: http.get(url).header("x-key", key)),
            ("other", True, lambda key: http.get(url)),
        ]:
            host = FakeHost().examples(manifest).install()
            send = lambda: request(vault.secret(name)).send()
            if sent:
                send()
            else:
                with self.assertRaisesRegex(AssertionError, "the host rejects a request"):
                    send()
            self.assertEqual(len(host.requests), int(sent))

    def test_a_body_without_the_required_fields_is_unavailable(self) -> None:
        host = FakeHost().answer("GET", "/good", 200, {"id": "a", "n": 1, "b": True})
        host.answer("GET", "/list", 200, []).answer("GET", "/page", 200, "<p>Ada").install()
        get = lambda path: http.get(f"https://a.test{path}").send()
        self.assertEqual(get("/good").json({"id": str, "n": int})["n"], 1)
        for path, shape in [("/good", {"b": int}), ("/good", {"x": str}), ("/list", {}), ("/page", {})]:
            fault = self.fault(lambda: get(path).json(shape))
            self.assertEqual((fault.category, fault.code), (FaultCategory.UNAVAILABLE, "unexpected-answer"))
            self.assertNotIn("Ada", fault.message)

    def test_faults_settings_cache_and_logs_work_as_on_the_host(self) -> None:
        host = FakeHost().setting("base_url", "https://a.test/").timeout("GET", "/slow").cut("GET", "/cut")
        host.no_connection("GET", "/down").install()
        code = lambda path: self.fault(lambda: http.get(settings.url("base_url", path)).send()).code
        self.assertEqual([code("/slow"), code("down"), code("cut")], ["timeout", "connect", "cut"])
        self.assertEqual(settings.get("mode", "live"), "live")
        for call in (lambda: settings.required("mode"), lambda: vault.secret("none")):
            self.assertEqual(self.fault(call).category, FaultCategory.MISCONFIGURED)
        self.assertIsNone(cache.get("k"))
        cache.put("k", "v", 60)
        self.assertEqual((cache.get("k"), host.cache["k"]), ("v", ("v", 60)))
        log.warn("hm")
        self.assertEqual(host.logs, [(Level.WARN, "hm")])

    def test_only_unavailable_is_retryable(self) -> None:
        self.assertTrue(faults.unavailable("").value.retryable)
        for fault in [faults.invalid("a", ""), faults.refused("", ""), faults.not_found(""), faults.misconfigured(""), faults.other("")]:
            self.assertFalse(fault.value.retryable)
        self.assertEqual(faults.invalid("amount", "").value.details, [("field", "amount")])

    def test_signatures_and_secrets_are_verified(self) -> None:
        # RFC 4231, test case 2.
        FakeHost().secret("key", "Jefe").install()
        data = b"what do ya want for nothing?"
        hex = "5BDCC146BF60754E6A042426089575C75A003F089D2739839DEC58B964EC3843"
        self.assertTrue(vault.signed_hex("sha256", "key", data, hex))
        self.assertTrue(vault.signed_base64("sha256", "key", data, "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM="))
        for given, signature in [(b"else", hex), (data, ""), (data, hex[1:]), (data, "é")]:
            self.assertFalse(vault.signed_hex("sha256", "key", given, signature))
        self.assertTrue(vault.matches("key", b"Jefe") and not vault.matches("key", b"Jeff"))
        self.assertEqual(self.fault(lambda: vault.hmac("md5", "key", data)).category, FaultCategory.INVALID)

    def test_the_manifest_is_the_last_custom_section_of_the_component(self) -> None:
        wasm = packed(b"\0asm", b"x" * 200)
        # The name with its length takes 19 bytes: 219 in total, which takes two bytes of LEB128.
        self.assertEqual(wasm[4:8], bytes([0, 0xDB, 0x01, 18]))
        self.assertEqual((wasm[8:26], len(wasm)), (b"tollhouse:manifest", 7 + 219))
