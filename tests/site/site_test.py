#!/usr/bin/env python3
"""site_test.py: the links between documents, the navigation of the site, and the site that tools/site/build makes of them."""

import importlib.machinery
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "site"))

import links  # noqa: E402
import navigation  # noqa: E402

loader = importlib.machinery.SourceFileLoader("build", str(ROOT / "tools" / "site" / "build"))
build = importlib.util.module_from_spec(importlib.util.spec_from_loader("build", loader))
loader.exec_module(build)


def text_of(html):
    return re.sub(r"<[^>]*>", "", html)


class Links(unittest.TestCase):
    def test_every_link_leads_to_a_file_and_a_heading(self):
        self.assertEqual([sentence for page in build.documents() for sentence in links.broken(ROOT, page)], [])

    def test_broken_links_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "a.md")
            page.write_text("# One `thing`, and another\n\n    [e](e.md)\n\n[a](#one-thing-and-another) [b](#two) [c](b.md) `[d](d.md)`\n")
            self.assertEqual([sentence.split(")")[0] for sentence in links.broken(pathlib.Path(folder), "a.md")], ["a.md: (#two", "a.md: (b.md"])


class Releases(unittest.TestCase):
    def test_the_version_has_its_date_and_notes(self):
        cmake = (ROOT / "CMakeLists.txt").read_text()
        version = re.search(r"project\(starling VERSION ([\d.]+)", cmake)[1]
        date = re.search(r"set\(STARLING_RELEASED ([\d-]+)\)", cmake)[1]
        headings = re.findall(r"^## (.*)", (ROOT / "CHANGELOG.md").read_text(), re.M)
        self.assertEqual(headings[:2], ["Unreleased", f"{version} ({date})"])
        self.assertIn(f"Date: {date}.", (ROOT / f"docs/releases/{version}.md").read_text())
        self.assertIn(f"| {version.rsplit('.', 1)[0]} | yes |", (ROOT / "SECURITY.md").read_text())
        citation = (ROOT / "CITATION.cff").read_text()
        self.assertIn(f"\nversion: {version}\ndate-released: {date}\n", citation)
        title = re.search(r'^title: "(.*)"$', citation, re.M)[1]
        self.assertIn(f"    The Starling developers: {title}, version {version}, {date[:4]}.\n", (ROOT / "README.md").read_text())

    def test_each_release_has_notes(self):
        notes = {file.stem for file in (ROOT / "docs/releases").glob("*.md")}
        self.assertEqual(notes, set(re.findall(r"^## ([\d.]+) ", (ROOT / "CHANGELOG.md").read_text(), re.M)))


class Navigation(unittest.TestCase):
    def setUp(self):
        self.navigation = navigation.navigation(ROOT, build.documents())
        self.pages = navigation.pages(self.navigation)

    def test_every_document_stands_in_it_once(self):
        self.assertEqual(sorted(self.pages), build.documents())

    def test_its_sections_are_the_readers(self):
        readers = re.findall(r"^## (.*)", (ROOT / "docs/README.md").read_text(), re.M)
        self.assertEqual([title for section in self.navigation for title in section], ["Starling", *readers])

    def test_the_guide_has_its_order(self):
        guide = [page for page in self.pages if page.startswith("docs/guide/")]
        numbered = re.findall(r"^\d+\. \[.*?\]\((.*?)\)", (ROOT / navigation.GUIDE).read_text(), re.M)
        self.assertEqual(guide, [navigation.GUIDE, *(f"docs/guide/{name}" for name in numbered)])


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        subprocess.run([ROOT / "tools/site/build", cls.folder.name], check=True, timeout=240, stdout=subprocess.DEVNULL)
        cls.html = pathlib.Path(cls.folder.name, "html")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_every_document_is_a_page(self):
        for page in build.documents():
            file = page.replace("README.md", "index.html").replace(".md", ".html")
            self.assertTrue((self.html / file).is_file(), file)

    def test_relative_links_of_pages_lead_to_files(self):
        for file in self.html.rglob("*.html"):
            if file.name == "404.html":
                continue
            for target in re.findall(r'(?:href|src)="([^"#?]+)[^"]*"', file.read_text()):
                if not re.match(r"\w+:|//", target):
                    self.assertTrue((file.parent / target).exists(), f"{file.relative_to(self.html)}: {target}")

    def test_code_and_lists_are_not_text(self):
        for file in self.html.rglob("*.html"):
            for paragraph in re.findall(r"<p>(.*?)</p>", file.read_text(), re.S):
                plain = re.sub(r"<code>.*?</code>", "", paragraph, flags=re.S)
                self.assertNotRegex(plain, r"```|\n\s*([-*]|\d+\.) |\n\|", file.relative_to(self.html))

    def test_links_out_of_docs_stay_in_the_site(self):
        page = (self.html / "docs" / "index.html").read_text()
        self.assertIn('href="../src/message/index.html"', page)
        self.assertIn('href="../CONTRIBUTING.html"', page)

    def test_the_search_finds_words_of_all_three_readers(self):
        rows = json.loads((self.html / "search" / "search_index.json").read_text())["docs"]
        for page, word in (("docs/guide/hangs.html", "deadlock"), ("docs/security.html", "SO_PEERCRED"), ("docs/design.html", "doorbell")):
            self.assertTrue(any(row["location"].startswith(page) and word in row["text"] for row in rows), word)


class Strictness(unittest.TestCase):
    def test_a_broken_link_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder, "tree")
            for path in (*build.documents(), *build.pictures(), *(f"tools/site/{n}" for n in ("build", "links.py", "navigation.py", "mkdocs.json"))):
                (tree / path).parent.mkdir(parents=True, exist_ok=True)
                (tree / path).write_bytes((ROOT / path).read_bytes())
            with (tree / "docs/why.md").open("a") as page:
                page.write("\n[none](nosuch.md)\n")
            result = subprocess.run([sys.executable, tree / "tools/site/build", tree / "out"], capture_output=True, text=True, timeout=240)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn("docs/nosuch.md", result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main()
