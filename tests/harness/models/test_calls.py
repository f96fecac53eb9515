import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor

from harness.models.calls import Call, calls_of_this_context, last_key, next_sample, note_call, rollout


def _call(role="task", cached=False):
    return Call(role, "key", cached, 0.1, 1, 1)


def test_calls_are_seen_by_their_own_block_only():
    note_call(_call())
    with calls_of_this_context() as calls:
        note_call(_call(cached=True))
        note_call(_call())
    note_call(_call())

    assert len(calls) == 2
    assert calls.fresh == 1


def test_an_inner_blocks_calls_belong_to_the_outer_one_too():
    with calls_of_this_context() as outer:
        note_call(_call("task"))
        with calls_of_this_context() as inner:
            note_call(_call("judge"))

    assert [call.role for call in inner] == ["judge"]
    assert [call.role for call in outer] == ["task", "judge"]


def test_parallel_examples_do_not_see_each_others_calls():
    def example(number):
        with calls_of_this_context() as calls:
            for _ in range(number):
                note_call(_call())
            return len(calls)

    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(lambda n: contextvars.copy_context().run(example, n), range(20)))

    assert counts == list(range(20))


def test_threads_of_asyncio_report_to_the_block_around_them():
    async def run():
        with calls_of_this_context() as calls:
            await asyncio.gather(*(asyncio.to_thread(note_call, _call()) for _ in range(5)))
            return len(calls)

    assert asyncio.run(run()) == 5


def test_samples_are_numbered_inside_one_call():
    assert next_sample() == (None, 0)
    assert next_sample() == (None, 0)
    with rollout(None):
        assert [next_sample() for _ in range(2)] == [(None, 0), (None, 1)]
        with rollout(7):
            assert next_sample() == (7, 0)
        assert next_sample() == (None, 2)


def test_samples_of_one_call_in_threads_have_numbers_of_their_own():
    with rollout(3), ThreadPoolExecutor(8) as pool:
        drawn = [pool.submit(contextvars.copy_context().run, next_sample) for _ in range(200)]

    assert sorted(future.result() for future in drawn) == [(3, number) for number in range(200)]


def test_the_latest_key_of_a_role():
    assert last_key("task") == ""
    with calls_of_this_context():
        assert last_key("task") == ""
        for role, key in (("task", "a"), ("task", "b"), ("judge", "c")):
            note_call(Call(role, key, False, 0.1, 1, 1))
        assert (last_key("task"), last_key("judge"), last_key("teacher")) == ("b", "c", "")
