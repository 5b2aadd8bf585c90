"""A campaign: protocol, labels and schedule, named by their hash.

Loads nothing outside the standard library: devices read campaigns too.
"""

from loloha.campaign.document import Campaign
from loloha.campaign.domain import Domain, Labels, Range
from loloha.campaign.schedule import Schedule

__all__ = ["Campaign", "Domain", "Labels", "Range", "Schedule"]
