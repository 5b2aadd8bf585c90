"""The agreement of clients and collector: protocol, labels and schedule, content-addressed.

Loads nothing outside the standard library: devices read campaigns too.
"""

from loloha.campaign.document import Campaign
from loloha.campaign.domain import Domain, Labels, Range
from loloha.campaign.schedule import Schedule

__all__ = [
    "Campaign",
    "Domain",
    "Labels",
    "Range",
    "Schedule",
]
