"""Prices of an order."""

PRICES = {"tea": 450, "mug": 1290, "pot": 3900, "tin": 720, "set": 8900}
GIFT_PRICES = {"none": 0, "paper": 250, "box": 490}
GIFT_DEFAULT = 250
DISCOUNT_MAX_PERCENT = 30


def item_price(item):
    """Price of one position in cents."""
    return PRICES[item["sku"]] * item.get("count", 1)


def discounted(cents, percent):
    """Takes a discount off, rounded down, never more than the shop allows."""
    percent = max(0, min(percent, DISCOUNT_MAX_PERCENT))
    return cents - cents * percent // 100


def gift_price(wrap):
    """Price of the gift wrap that the customer chose, in cents."""
    if not wrap:
        return 0
    return GIFT_PRICES.get(wrap, GIFT_DEFAULT)


def order_total(order):
    """What the customer pays, in cents."""
    goods = sum(item_price(item) for item in order["items"])
    goods = discounted(goods, order.get("discount", 0))
    return goods + gift_price(order.get("gift"))


def reserve_request(order):
    """What the inventory is asked to put aside."""
    return {"order": order["id"], "items": order["items"]}
