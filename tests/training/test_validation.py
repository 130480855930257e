"""Validation against the plain formula, and its independence from how batches are cut."""

import pytest
import sacrebleu
import torch

from kakehashi.data.batching import BatchSampler
from kakehashi.data.loader import BatchLoader
from kakehashi.decoding.config import DecodingConfig
from kakehashi.decoding.greedy import greedy_search
from kakehashi.decoding.limits import max_lengths
from kakehashi.training.validation import Tally, Validator


def batches(numbers, batch_tokens):
    valid = numbers.valid
    sampler = BatchSampler(
        valid.source_lengths, valid.target_lengths, batch_tokens=batch_tokens, shuffle=False
    )
    return list(BatchLoader(valid, sampler))


def test_nll_is_the_mean_over_all_real_tokens(numbers, tiny_model):
    tiny_model.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for batch in batches(numbers, 1):
            logits = tiny_model(batch.source, batch.source_allowed, batch.target_input)
            log_p = logits.log_softmax(-1).gather(2, batch.target_output.unsqueeze(2))
            total -= log_p.sum().item()
            count += log_p.numel()
    result = numbers.validator().run(tiny_model, numbers.batches())
    assert result.nll == pytest.approx(total / count, abs=1e-5)


@pytest.mark.parametrize("batch_tokens", [1, 30, 100, 10_000])
def test_batches_change_nothing(numbers, tiny_model, batch_tokens):
    expected = numbers.validator().run(tiny_model, numbers.batches())
    result = numbers.validator().run(tiny_model, batches(numbers, batch_tokens))
    assert result.nll == pytest.approx(expected.nll, abs=1e-5)
    assert result.bleu == expected.bleu


@pytest.mark.parametrize("beam", [1, 3])
def test_bleu_is_sacrebleus_on_decoded_text_in_the_order_of_the_references(
    numbers, tiny_model, beam
):
    tiny_model.eval()
    config = DecodingConfig(beam=beam, max_ratio=1.0, max_extra=2)
    validator = numbers.validator()
    validator.decoding = config
    result = validator.run(tiny_model, numbers.batches())
    translations = [""] * len(numbers.references)
    for batch in batches(numbers, 1):
        allowed = batch.source_allowed
        if beam == 1:
            found = greedy_search(
                tiny_model,
                tiny_model.encode(batch.source, allowed),
                max_lengths=max_lengths(allowed, config),
                length_penalty=1.0,
            )
            translations[int(batch.index)] = validator.decode(found[0][0].ids)
    if beam == 1:
        expected = sacrebleu.corpus_bleu(translations, [numbers.references]).score
        assert result.bleu == pytest.approx(expected)
    else:
        assert result.bleu >= 0


@pytest.mark.parametrize("processes", [2, 3, 5, 7])
def test_several_processes_make_exactly_the_result_of_one(numbers, tiny_model, processes):
    validator, all_batches = numbers.validator(), batches(numbers, 40)
    tiny_model.eval()
    expected = validator.run(tiny_model, all_batches)
    tallies = [Tally() for _ in range(processes)]
    for i, batch in enumerate(all_batches):
        validator.visit(tiny_model, batch, tallies[i % processes])
    dealt = [pair for tally in tallies for pair in tally.translations]
    assert sorted(dealt) == list(range(23))
    assert validator.result(tallies) == expected
    # fewer batches than processes: each of them takes all
    assert validator.result([tallies[0], *tallies]) == expected


def test_leaves_the_training_mode_as_it_was(numbers, tiny_model):
    tiny_model.train()
    numbers.validator().run(tiny_model, numbers.batches())
    assert tiny_model.training


def test_draws_no_random_numbers(numbers, tiny_model):
    state = torch.get_rng_state()
    numbers.validator().run(tiny_model.train(), numbers.batches())
    assert torch.equal(state, torch.get_rng_state())


def test_a_validator_says_what_it_compares():
    validator = Validator(["w1 w2 w3 w4"], lambda ids: "w1 w2 w3 w4", "en", DecodingConfig())
    tally = Tally(nll={0: (6.0, 4)}, translations={0: "w1 w2 w3 w4"})
    result = validator.result([tally])
    assert (result.nll, result.bleu) == (1.5, pytest.approx(100))
