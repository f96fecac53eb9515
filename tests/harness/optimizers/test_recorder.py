"""The recorder keeps what was measured on validation, as it was, and lets nothing start once it is closed."""

import threading

import dspy
import pytest

from harness.errors import RunStopped, StopReason
from harness.optimizers.recorder import Recorder, program_key


class Constant(dspy.Module):
    def __init__(self, answer="x"):
        super().__init__()
        self.ask = dspy.Predict("text -> label")
        self.answer = answer

    def forward(self, text):
        return dspy.Prediction(label=self.answer)


EXAMPLES = [dspy.Example(id=f"e{number}", text="t", label="x").with_inputs("text") for number in range(4)]


def is_right(example, prediction, trace=None):
    return prediction.label == example.label


def listening(recorder, *others):
    return dspy.context(callbacks=[*others, *dspy.settings.callbacks, recorder], lm=None)


def measure(program, examples=EXAMPLES, threads=1):
    return dspy.Evaluate(devset=examples, metric=is_right, num_threads=threads, max_errors=100)(program)


@pytest.mark.parametrize("threads", [1, 3])
def test_full_and_partial_measurements_are_told_apart_and_others_are_left_out(threads):
    recorder = Recorder(Constant(), EXAMPLES)
    stranger = dspy.Example(id="train", text="t", label="x").with_inputs("text")
    with listening(recorder):
        measure(Constant("y"), threads=threads)
        measure(Constant(), EXAMPLES[:2], threads=threads)
        measure(Constant(), [stranger], threads=threads)
    assert [(tried.score, tried.n, tried.full) for tried in recorder.tried] == [(0.0, 4, True), (1.0, 2, False)]
    assert [candidate.name for candidate in recorder.candidates()] == ["candidate 1", "candidate 2"]
    assert recorder.best is not None
    assert recorder.best.answer == "y"


def test_a_program_stays_what_was_measured():
    recorder, program = Recorder(Constant(), EXAMPLES), Constant()
    with listening(recorder):
        measure(program)
    program.answer, program.ask.demos = "changed", [dspy.Example(text="a", label="b")]
    assert recorder.best.answer == "x"
    assert recorder.best.ask.demos == []


def test_the_first_of_equals_is_the_best():
    recorder = Recorder(Constant(), EXAMPLES)
    for name, score in [("a", 0.5), ("b", 0.5), ("c", 0.25)]:
        recorder.measured(Constant(name), score, 4)
    assert recorder.best.answer == "a"
    assert Recorder(Constant(), EXAMPLES).best is None


def test_other_callbacks_go_on_listening():
    class Other(dspy.utils.callback.BaseCallback):
        heard = 0

        def on_evaluate_start(self, call_id, instance, inputs):
            self.heard += 1

    other = Other()
    with listening(Recorder(Constant(), EXAMPLES), other):
        measure(Constant())
    assert other.heard == 1


def test_an_evaluation_inside_an_evaluation_is_kept_apart():
    class Nested(Constant):
        def forward(self, text):
            measure(Constant("y"), EXAMPLES[:1])
            return super().forward(text)

    recorder = Recorder(Constant(), EXAMPLES)
    with listening(recorder):
        measure(Nested(), threads=2)
    assert [tried.score for tried in recorder.tried if tried.full] == [1.0]
    assert [tried.n for tried in recorder.tried if not tried.full] == [1, 1, 1, 1]


def test_answers_that_never_came_are_counted():
    class Broken(Constant):
        def forward(self, text):
            raise ValueError("no answer")

    recorder = Recorder(Constant(), EXAMPLES)
    with listening(recorder):
        measure(Broken())
    assert (recorder.tried[0].score, recorder.unusable) == (0.0, 4)


def test_a_measurement_that_broke_off_is_none_and_is_told():
    def raises(example, prediction):
        raise RunStopped(StopReason.BUDGET, "spent")

    recorder = Recorder(Constant(), EXAMPLES)
    with listening(recorder), pytest.raises(RunStopped):
        dspy.Evaluate(devset=EXAMPLES, metric=raises, num_threads=1)(Constant())
    with listening(recorder), pytest.raises(TypeError):
        dspy.Evaluate(devset=EXAMPLES, metric=lambda *_: None, num_threads=1, max_errors=100)(Constant())
    assert recorder.tried == []
    assert "broke off" in recorder.notes[0]


def test_nothing_starts_once_it_is_closed_and_what_runs_is_waited_for():
    recorder = Recorder(Constant(), EXAMPLES)
    started, may_end, order = threading.Event(), threading.Event(), []

    class Slow(Constant):
        def forward(self, text):
            started.set()
            may_end.wait(5)
            order.append("ended")
            return super().forward(text)

    def run():
        with listening(recorder):
            Slow()(text="t")

    worker = threading.Thread(target=run)
    worker.start()
    started.wait(5)
    closer = threading.Thread(target=lambda: (recorder.close(), order.append("closed")))
    closer.start()
    may_end.set()
    closer.join(5)
    worker.join(5)
    assert order == ["ended", "closed"]
    with listening(recorder), pytest.raises(RunStopped, match="tuning has ended"):
        Constant()(text="t")


def test_programs_that_send_the_same_are_the_same():
    changed, more = Constant(), Constant()
    changed.ask.signature = changed.ask.signature.with_instructions("Other.")
    more.ask.demos = [dspy.Example(text="a", label="b")]
    assert program_key(Constant()) == program_key(Constant().deepcopy())
    assert len({program_key(program) for program in (Constant(), changed, more)}) == 3
    recorder = Recorder(Constant(), EXAMPLES)
    assert recorder.is_baseline(Constant())
    assert not recorder.is_baseline(more)
    assert recorder.describe(more) == "1 demo"
    assert recorder.describe(changed) == "0 demos, other instructions"
