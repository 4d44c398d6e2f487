"""What tokens cost: usage as a provider reports it, prices by model and date, and the cost of one in the other."""

from collector.prices.cost import CostResult, cost_of, is_far_above
from collector.prices.imported import ImportedPrices
from collector.prices.override import read_prices
from collector.prices.periods import Period, periods
from collector.prices.price import Price, Rate, Tier
from collector.prices.pricing import PriceSource, Pricing
from collector.prices.usage import Usage, latest_usage, read_usage

__all__ = [
    "CostResult",
    "ImportedPrices",
    "Period",
    "Price",
    "PriceSource",
    "Pricing",
    "Rate",
    "Tier",
    "Usage",
    "cost_of",
    "is_far_above",
    "latest_usage",
    "periods",
    "read_prices",
    "read_usage",
]
