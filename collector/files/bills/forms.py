"""The forms of bills: FOCUS, AWS CUR, Azure cost details, OCI cost reports, and any table of costs."""

import polars as pl

from collector.files.bills.columns import Columns
from collector.files.bills.form import Form
from store.columns import Kind
from store.money import rounded, shifted

_MONEY_TYPE = Kind.MONEY.polars()

_FOCUS_VERSIONS = (
    ("1.4", frozenset({"commitmentprogrameligibilitydetails", "invoicedetailid"})),
    ("1.3", frozenset({"serviceprovidername", "hostprovidername", "contractapplied"})),
    ("1.2", frozenset({"invoiceid", "pricingcurrency", "billingaccounttype"})),
    ("1.1", frozenset({"skumeter", "skupricedetails", "capacityreservationid", "commitmentdiscountquantity"})),
)
"""Columns that a version brought, newest first."""


def _focus_version(columns: Columns) -> str:
    return "focus_" + next((name for name, brought in _FOCUS_VERSIONS if brought & columns.names), "1.0")


FOCUS = Form(
    source=_focus_version,
    needs=frozenset({"billedcost", "chargeperiodstart", "chargecategory"}),
    fields={
        "ts": ("chargeperiodstart",),
        "end_ts": ("chargeperiodend",),
        "billing_period": ("billingperiodstart",),
        "provider": ("serviceprovidername", "providername", "hostprovidername", "publishername"),
        "account": ("billingaccountid",),
        "sub_account": ("subaccountid",),
        "cost_service": ("servicename",),
        "category": ("chargecategory",),
        "correction": ("chargeclass",),
        "region": ("regionid", "regionname"),
        "zone": ("availabilityzone",),
        "resource": ("resourceid", "resourcename"),
        "sku": ("skupriceid", "skuid"),
        "description": ("chargedescription",),
        "quantity": ("consumedquantity", "pricingquantity"),
        "unit": ("consumedunit", "pricingunit"),
        "list_unit_price": ("listunitprice",),
        "billed_cost": ("billedcost",),
        "effective_cost": ("effectivecost",),
        "list_cost": ("listcost",),
        "contracted_cost": ("contractedcost",),
        "currency": ("billingcurrency",),
    },
    identity=(
        "billingaccountid", "subaccountid", "serviceprovidername", "providername", "publishername", "chargecategory",
        "chargeclass", "chargedescription", "chargefrequency", "servicename", "regionid", "availabilityzone",
        "resourceid", "skuid", "skupriceid", "commitmentdiscountid", "commitmentdiscountstatus", "pricingcategory",
        "consumedunit", "pricingunit", "billingcurrency", "allocatedmethodid", "allocatedresourceid",
    ),
    corrections=frozenset({"correction"}),
)  # fmt: skip

_AWS_CATEGORIES = {
    "usage": "Usage", "discountedusage": "Usage", "savingsplancoveredusage": "Usage", "savingsplannegation": "Usage",
    "fee": "Purchase", "rifee": "Purchase", "savingsplanupfrontfee": "Purchase",
    "savingsplanrecurringfee": "Purchase", "tax": "Tax", "credit": "Credit", "refund": "Credit",
    "discount": "Credit", "bundleddiscount": "Credit", "edpdiscount": "Credit", "privateratediscount": "Credit",
}  # fmt: skip


def _aws_effective(columns: Columns, lines: pl.DataFrame) -> dict[str, pl.Series]:
    """Amortised cost: commitments cost when they are used, not when they are bought."""
    number = {
        name: columns.money([plain_name]).value
        for name, plain_name in (
            ("reserved", "reservationeffectivecost"),
            ("unused_upfront", "reservationunusedamortizedupfrontfeeforbillingperiod"),
            ("unused_recurring", "reservationunusedrecurringfee"),
            ("planned", "savingsplansavingsplaneffectivecost"),
            ("committed", "savingsplantotalcommitmenttodate"),
            ("used", "savingsplanusedcommitment"),
        )
    }
    frame = pl.DataFrame({**number, "type": columns.text(["lineitemlineitemtype"]), "billed": lines["billed_cost"]})
    kind = pl.col("type")
    effective = (
        pl.when(kind == "DiscountedUsage").then("reserved")
        .when(kind == "SavingsPlanCoveredUsage").then("planned")
        .when(kind == "RIFee").then(pl.col("unused_upfront").fill_null(0) + pl.col("unused_recurring").fill_null(0))
        .when(kind == "SavingsPlanRecurringFee").then(pl.col("committed") - pl.col("used"))
        .when(kind.is_in(["SavingsPlanNegation", "SavingsPlanUpfrontFee"])).then(pl.lit(0, _MONEY_TYPE))
        .otherwise("billed")
    )  # fmt: skip
    return {"effective_cost": frame.select(effective.alias("effective_cost")).to_series()}


AWS_CUR = Form(
    source=lambda _: "aws_cur",
    needs=frozenset({"lineitemusagestartdate", "lineitemunblendedcost", "lineitemlineitemtype"}),
    fields={
        "ts": ("lineitemusagestartdate",),
        "end_ts": ("lineitemusageenddate",),
        "billing_period": ("billbillingperiodstartdate",),
        "account": ("billpayeraccountid",),
        "sub_account": ("lineitemusageaccountid",),
        "cost_service": ("productproductname", "productservicename", "lineitemproductcode"),
        "category": ("lineitemlineitemtype",),
        "correction": ("lineitemlineitemtype",),
        "region": ("productregioncode", "productregion"),
        "zone": ("lineitemavailabilityzone",),
        "resource": ("lineitemresourceid",),
        "sku": ("productsku", "lineitemusagetype"),
        "description": ("lineitemlineitemdescription",),
        "quantity": ("lineitemusageamount",),
        "unit": ("pricingunit",),
        "list_unit_price": ("pricingpublicondemandrate",),
        "billed_cost": ("lineitemunblendedcost",),
        "list_cost": ("pricingpublicondemandcost",),
        "currency": ("lineitemcurrencycode",),
    },
    identity=(  # not identity/LineItemId: AWS gives a line another one in every export
        "billpayeraccountid", "billbilltype", "billbillingentity", "lineitemusageaccountid", "lineitemlineitemtype",
        "lineitemproductcode", "lineitemusagetype", "lineitemoperation", "lineitemavailabilityzone",
        "lineitemresourceid", "lineitemlineitemdescription", "lineitemtaxtype", "lineitemlegalentity",
        "lineitemcurrencycode", "productsku", "pricingterm", "pricingrateid", "reservationreservationarn",
        "reservationsubscriptionid", "savingsplansavingsplanarn",
    ),
    categories=_AWS_CATEGORIES,
    corrections=frozenset({"refund"}),
    provider="AWS",
    tags=("resourcetags",),
    tag_prefixes=("resourceTags/", "resource_tags_"),
    derive=_aws_effective,
)  # fmt: skip

AZURE = Form(
    source=lambda columns: "azure_mca" if "pricingcurrency" in columns.names else "azure_ea",
    needs=frozenset({"date", "metercategory", "meterid", "chargetype", "consumedservice"}),
    fields={
        "ts": ("date",),
        "billing_period": ("billingperiodstartdate",),
        "account": ("billingaccountid",),
        "sub_account": ("subscriptionid", "subscriptionguid"),
        "cost_service": ("metercategory",),
        "category": ("chargetype",),
        "correction": ("chargetype",),
        "region": ("resourcelocation", "resourcelocationnormalized", "meterregion"),
        "zone": ("availabilityzone",),
        "resource": ("resourceid", "instanceid", "resourcename"),
        "sku": ("partnumber", "meterid"),
        "description": ("productname", "product"),
        "tenant": ("costcenter",),
        "quantity": ("quantity",),
        "unit": ("unitofmeasure",),
        "list_unit_price": ("paygprice",),
        "billed_cost": ("costinbillingcurrency", "cost", "pretaxcost"),
        "currency": ("billingcurrencycode", "billingcurrency"),
    },
    identity=(
        "billingaccountid", "billingprofileid", "invoicesectionid", "invoicesectionname", "subscriptionid",
        "resourceid", "instanceid", "resourcegroup", "resourcelocation", "meterid", "meterregion", "metername",
        "partnumber", "productname", "product", "chargetype", "frequency", "pricingmodel", "term", "reservationid",
        "benefitid", "productorderid", "publishername", "planname", "unitofmeasure", "serviceinfo1", "serviceinfo2",
        "billingcurrencycode", "billingcurrency", "costallocationrulename",
    ),
    categories={
        "usage": "Usage", "unusedreservation": "Usage", "unusedsavingsplan": "Usage", "purchase": "Purchase",
        "tax": "Tax", "refund": "Adjustment", "roundingadjustment": "Adjustment", "credit": "Credit",
    },
    corrections=frozenset({"refund"}),
    provider="Microsoft",
    days=True,
)  # fmt: skip

OCI = Form(
    source=lambda _: "oci",
    needs=frozenset({"lineitemintervalusagestart", "costmycost", "costcurrencycode"}),
    fields={
        "ts": ("lineitemintervalusagestart",),
        "end_ts": ("lineitemintervalusageend",),
        "account": ("lineitemtenantid", "costsubscriptionid"),
        "sub_account": ("productcompartmentid", "productcompartmentname"),
        "cost_service": ("productservice",),
        "correction": ("lineitemiscorrection",),
        "region": ("productregion",),
        "zone": ("productavailabilitydomain",),
        "resource": ("productresourceid", "productresource"),
        "sku": ("costproductsku",),
        "description": ("productdescription", "costskuunitdescription"),
        "quantity": ("usagebilledquantity",),
        "unit": ("costbillingunitreadable", "usageconsumedquantityunits"),
        "list_unit_price": ("costunitprice",),
        "billed_cost": ("costmycost",),
        "currency": ("costcurrencycode",),
    },
    identity=(
        "lineitemtenantid", "costsubscriptionid", "productcompartmentid", "productservice", "productregion",
        "productavailabilitydomain", "productresourceid", "productresource", "costproductsku", "costoverageflag",
        "lineitemiscorrection", "lineitembackreferenceno", "costcurrencycode", "costbillingunitreadable",
    ),
    corrections=frozenset({"true"}),
    provider="Oracle",
    tags=(),
    tag_prefixes=("tags/",),
)  # fmt: skip

_MONEY = r"(?i)^(micro|milli|nano)?[-_ ]?(USD|EUR|GBP|JPY|CNY|CHF|CAD|AUD|INR)$"
_PLACES = {"micro": -6, "milli": -3, "nano": -9}


def _money_unit(columns: Columns, lines: pl.DataFrame) -> dict[str, pl.Series]:
    """Read a unit of money ('microUSD') as currency, and the cost in whole units of it."""
    parts = columns.text(["unit"]).str.extract_groups(_MONEY).struct.unnest()
    places = [_PLACES.get((part or "").lower(), 0) for part in parts["1"]]
    exact = [a if a is None or not p else shifted(a, p) for a, p in zip(lines["billed_cost"], places, strict=True)]
    kept = [None if amount is None else rounded(amount) for amount in exact]
    stated = parts["2"].is_not_null()
    millions = pl.lit("million" if "quantitym" in columns.names else None, pl.String)
    frame = lines.select(
        billed_cost=pl.Series(kept, dtype=_MONEY_TYPE),
        rounded=pl.col("rounded") | pl.Series([k != a for k, a in zip(kept, exact, strict=True)], dtype=pl.Boolean),
        currency=pl.coalesce("currency", parts["2"].str.to_uppercase()),
        unit=pl.when(~stated).then("unit").fill_null(millions),
    )
    return {name: frame[name] for name in frame.columns}


TABLE = Form(
    source=lambda _: "table",
    needs=frozenset(),
    fields={
        "ts": (
            "ts", "timestamp", "time", "chargeperiodstart", "start", "starttime", "localhourstart", "hourstart",
            "hour", "datetime", "date", "day", "usagedate",
        ),
        "end_ts": ("endts", "end", "endtime", "chargeperiodend"),
        "provider": ("provider", "cloud", "vendor"),
        "account": ("account", "accountid", "billingaccountid"),
        "sub_account": ("subaccount", "subscription", "project", "projectid"),
        "cost_service": ("costservice", "servicename", "service", "product"),
        "category": ("category", "chargecategory", "chargetype"),
        "region": ("region", "regionid", "location"),
        "zone": ("zone", "availabilityzone"),
        "resource": ("resource", "resourceid"),
        "sku": ("sku", "meter"),
        "description": ("description", "id"),
        "model": ("model",),
        "tenant": ("tenant", "team", "customer", "costcenter"),
        "environment": ("environment", "env"),
        "service": ("service",),
        "quantity": ("quantity", "quantitym", "usage", "amountused", "units"),
        "billed_cost": ("billedcost", "cost", "costusd", "amount", "spend", "price"),
        "effective_cost": ("effectivecost",),
        "list_cost": ("listcost",),
        "unit": ("unit",),
        "currency": ("currency", "billingcurrency", "currencycode"),
    },
    identity=(
        "provider", "account", "subaccount", "service", "servicename", "product", "category", "region", "zone",
        "resource", "sku", "description", "id", "model", "tenant", "team", "customer", "environment", "env", "currency",
    ),
    derive=_money_unit,
)  # fmt: skip
"""Any table with a time and a cost; only where a person says that it is one (--as bill)."""

FORMS = (FOCUS, AWS_CUR, AZURE, OCI)


def form_of(columns: Columns) -> Form | None:
    """Return the form whose columns the table has, None where it is none of them."""
    return next((form for form in FORMS if form.needs <= columns.names), None)
