"""Looking at how a model attends."""

from kakehashi.insight.heatmap import heatmap
from kakehashi.insight.sentence import draw_attention

__all__ = ["draw_attention", "heatmap"]
