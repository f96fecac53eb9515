"""The embedded model in processes of its own: forks, and nothing said on stdout or stderr."""

import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("xllamacpp")


def test_a_forked_child_loads_a_model_of_its_own():
    program = textwrap.dedent("""
        import os
        from harness.models.llama_cpp import LlamaRuntime
        from harness.models.weights import locate
        runtime = LlamaRuntime(locate("local/smollm2-135m"), n_ctx=512, n_threads=1)
        ask = lambda: runtime.chat({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1})
        ask()
        child = os.fork()
        if child == 0:
            os._exit(0 if "choices" in ask() else 1)
        print(os.waitpid(child, 0)[1], "choices" in ask())
    """)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)

    assert run.stdout.split() == ["0", "True"]
    assert run.stderr == ""


def test_it_says_nothing_on_its_own():
    program = textwrap.dedent("""
        from harness.models.llama_cpp import LlamaRuntime
        from harness.models.weights import locate
        runtime = LlamaRuntime(locate("local/smollm2-135m"), n_ctx=512, n_threads=1)
        runtime.chat({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1})
        runtime.close()
    """)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)

    assert (run.stdout, run.stderr, run.returncode) == ("", "", 0)
