"""The examples of the page about tests run as they stand there."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "testing.md"
FIRST, SECOND = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_scripted_model_takes_the_place_of_the_one_in_the_file(project, capsys):
    text = (project / "experiment.yaml").read_text()
    (project / "experiment.yaml").write_text(text.replace("task: scripted/model", "task: openai/my-model"))
    exec(FIRST, {})  # the page's own code

    verdict, requests = capsys.readouterr().out.rsplit(maxsplit=1)
    assert verdict in ("no detectable change", "improved", "worse")
    assert int(requests) > 12


def test_the_server_is_there(capsys):
    code = SECOND.replace(
        "    ...  ",
        "    import urllib.request, urllib.error\n"
        "    try: urllib.request.urlopen(server.api_base + '/chat/completions', b'{\"messages\": []}')\n"
        "    except urllib.error.HTTPError as error: error.close()\n"
        "    #",
    )
    assert code != SECOND
    exec(code, {})  # the page's own code

    address, seen = capsys.readouterr().out.splitlines()
    assert address.startswith("http://127.0.0.1:")
    assert seen == "1 []"
