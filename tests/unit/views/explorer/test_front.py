"""The ES modules are joined in the order of their imports; a mistake in them is found when they are joined."""

from pathlib import Path

import pytest

from regard.views.explorer.front import (
    _EXPORT,
    _IMPORT,
    FOLDER,
    FrontError,
    _places,
    _read,
    _short_names,
    _shortened,
    _with_templates,
    modules_of,
    script,
    shipped,
    style,
    template,
)


def written(folder: Path, **modules: str) -> Path:
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text, encoding="utf-8")
    return folder


def test_modules_come_after_what_they_import(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        page='import { mount } from "./view.js";\nimport { one } from "./base.js";\nmount(one);\n',
        view='import {\n  one,\n  Two,\n} from "./base.js";\nexport async function mount(x) { return new Two(one); }\n',
        base="export const one = 1;\nexport class Two {}\n",
    )
    assert modules_of("page.js", folder) == ["base.js", "view.js", "page.js"]
    joined = script("page.js", folder)
    assert "import" not in joined
    assert "export" not in joined
    assert joined.index("=1") < joined.index("async function mount") < joined.index("\nmount(")


def test_the_default_export_of_a_widget_stays(tmp_path: Path) -> None:
    folder = written(tmp_path, widget="function render() {}\nexport default { render };\n")
    assert script("widget.js", folder).rstrip().endswith("export default{render};")


@pytest.mark.parametrize(
    ("modules", "fault"),
    [
        (
            {"a": 'import { b } from "./b.js";\nconst b2 = 1;\n', "b": "export const b = 1;\nlet b2 = 2;\n"},
            "b2 is also",
        ),
        ({"a": 'import { c } from "./b.js";\n', "b": "const c = 1;\n"}, "does not export c"),
        ({"a": 'import { b } from "./b.js";\n', "b": 'import { a } from "./a.js";\nexport const b = 1;\n'}, "export a"),
        ({"a": 'import { b as c } from "./b.js";\n', "b": "export const b = 1;\n"}, "without `as`"),
        ({"a": 'import * as b from "./b.js";\n', "b": "export const b = 1;\n"}, "in braces"),
        ({"a": 'import { b } from "./b.js";\n'}, "no module b.js"),
        ({"a": "const a = 1;\nexport { a };\n"}, "cannot join"),
        ({"a": 'import fs from "fs";\n'}, "cannot join"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, modules: dict[str, str], fault: str) -> None:
    with pytest.raises(FrontError, match=fault):
        script("a.js", written(tmp_path, **modules))


def test_modules_that_import_each_other_are_refused(tmp_path: Path) -> None:
    one = 'import { b } from "./b.js";\nexport const a = 1;\n'
    other = 'import { a } from "./a.js";\nexport const b = 1;\n'
    with pytest.raises(FrontError, match=r"a.js → b.js → a.js"):
        script("a.js", written(tmp_path, a=one, b=other))


def test_names_of_patterns_are_names_too(tmp_path: Path) -> None:
    folder = written(
        tmp_path, a='import { c } from "./b.js";\nconst [d, c] = [1, 2];\n', b="export const { x: c } = {};\n"
    )
    with pytest.raises(FrontError, match="c is also declared"):
        script("a.js", folder)


@pytest.mark.parametrize(
    "text",
    [
        "const one = f(c, b), c = 1;\n",
        "let a,\n  c;\n",
        "const { x = c2, y: [c] } = z;\n",
        "async function c() {}\n",
        "class c {}\n",
    ],
)
def test_every_name_of_a_declaration_must_be_unique(tmp_path: Path, text: str) -> None:
    folder = written(tmp_path, a='import { d } from "./b.js";\n' + text, b="export const d = 2;\nconst c = 1;\n")
    with pytest.raises(FrontError, match="c is also declared"):
        script("a.js", folder)


def test_names_inside_of_functions_may_repeat(tmp_path: Path) -> None:
    one = 'import { d } from "./b.js";\nconst f = (c) => { let c2 = 1, b = c; return c2; };\n'
    folder = written(tmp_path, a=one, b="export const d = 2;\nlet c = { b: 1 }, b = 2;\n")
    assert script("a.js", folder)


LARGEST = 150_000
"""Bytes of the front end in a file, and in a widget."""


@pytest.mark.parametrize("entry", ["page.js", "widget.js"])
def test_the_front_end_stays_small(entry: str) -> None:
    assert sum(len(part.encode()) for part in (script(entry), style(), template())) <= LARGEST


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("const a = b / c / d; // e\n", "let a=b/c/d;"),
        ('return /[/"]+ x/.test(a)\n  && b;', 'return/[/"]+ x/.test(a)&&b;'),
        (
            "const a = `x  ${ { b: `y  ${c}` }.b } // no comment`;",
            "let a=`x  ${ { b: `y  ${c}` }.b } // no comment`;",
        ),
        ("let a = 1\nlet b = a\n++b\n", "let a=1\nlet b=a\n++b"),
        ("a = b + +c - -d;", "a=b+ +c- -d;"),
        ("if (a) { f(); }\nelse { g([1, 2,], { h, }); }", "if(a){f()}else{g([1,2],{h})}"),
        ('const a = "//  \\"  x", 月 = \'/* */\';', 'let a="//  \\"  x",月=\'/* */\';'),
        ("const a = 1;\nlet b;\nconst { c } = a;\nb = 2;\nconst d = 3;\n", "let a=1,b,{c}=a;b=2;let d=3;"),
        ("const f = () => {\n  const a = 1;\n  const b = 2;\n};\nconst g = 3;\n", "let f=()=>{let a=1,b=2},g=3;"),
        ("for (const a of b) f(a);\nconst c = 1;\n", "for(let a of b)f(a);let c=1;"),
        ("a = (b) => c(0.5, 10.5, (d, e) => d);\nasync (x) => x;\n", "a=b=>c(.5,10.5,(d,e)=>d);async(x)=>x;"),
        ("a = {}\nb = () => {}\nc()\n", "a={}\nb=()=>{}\nc()"),
        ("function f() {}\nif (a) {}\nb();\n", "function f(){}if(a){}b();"),
    ],
)
def test_only_what_readers_need_is_left_out(text: str, short: str) -> None:
    assert shipped(text) == short


def renamed(folder: Path, text: str) -> str:
    return script("a.js", written(folder, a=text)).rstrip("\n")


@pytest.mark.parametrize(
    ("text", "short"),
    [
        (
            "const value = 1;\nf(value, other.value, { value, key: value });\n",
            "let a=1;f(a,other.value,{value:a,key:a});",
        ),
        ("const { value, other: more } = f();\nf(value, value, more);\n", "let{value:a,other:b}=f();f(a,a,b);"),
        (
            "function f({ value = 1, ...others }) { g(value, value, others); }\n",
            "function f({value:a=1,...b}){g(a,a,b)}",
        ),
        ("for (const [value] of all) g(value);\n", "for(let[a]of all)g(a);"),
        (
            "const value = 1;\nf(`value ${value} ${`${[value].value}`}`);\n",
            "let a=1;f(`value ${a} ${`${[a].value}`}`);",
        ),
        ("const text = (value) => value ? text : document.text;\n", "let a=b=>b?a:document.text;"),
        ("try { f(); } catch (error) { f(error, window); }\n", "try{f()}catch(a){f(a,window)}"),
        ("try { f(); } catch { window.error = 1; }\n", "try{f()}catch{window.error=1}"),
        ("const value = 1;\nfunction a2() { return { a2, value }; }\n", "let value=1;function a2(){return{a2,value}}"),
        ("if (window) { document.title = 1; }\n", "if(window){document.title=1}"),
        ("let frame = 0, value;\nvalue ||= frame;\n", "let a=0,b;b||=a;"),
        ("const value = /value/;\nf(value, 'value');\n", "let a=/value/;f(a,'value');"),
    ],
)
def test_variables_get_short_names_and_properties_keep_theirs(tmp_path: Path, text: str, short: str) -> None:
    assert renamed(tmp_path, text) == short


def test_a_short_name_is_never_one_that_is_in_use(tmp_path: Path) -> None:
    text = "const value = 1;\nfunction a(b) { return b + c + value + value; }\n"
    assert renamed(tmp_path, text) == "let d=1;function a(b){return b+c+d+d}"


def test_two_names_stay_two_names() -> None:
    parts = [_shortened(_EXPORT.sub("", _IMPORT.sub("", _read(FOLDER, name)))) for name in modules_of("page.js")]
    short = _short_names(parts)
    assert len(set(short.values())) == len(short) > 500
    kept = set()
    for tokens in (tokens for part in parts for tokens in _with_templates(part)):
        names = [token for token, _ in tokens]
        kept |= {name for name, place in zip(names, _places(names), strict=True) if place and name not in short}
    assert "document" in kept
    assert not kept & set(short.values())


def test_what_is_neither_an_object_nor_a_block_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FrontError, match="cannot read f"):
        renamed(tmp_path, "const value = { f.x };\n")
