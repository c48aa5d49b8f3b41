"""Checkout: takes orders, puts the goods aside, charges the card."""

import time

import orders
from pool import Pool
from shopkit import CONFIG, LOG, METRICS, call, run

POOL = Pool(CONFIG["pool_size"], CONFIG["pool_timeout_ms"] / 1000)
PAYMENT_TIMEOUT_S = 2.0

METRICS.gauge("db_pool_size", lambda: POOL.size)
METRICS.gauge("db_pool_in_use", lambda: POOL.in_use)
METRICS.gauge("db_pool_waiting", lambda: POOL.waiting)


def place_order(order):
    """Prices an order, reserves its goods and charges for it."""
    started = time.monotonic()
    total = orders.order_total(order)
    call("inventory", "/reserve", orders.reserve_request(order))
    with POOL.connection():
        receipt = call("payments", "/charge", {"order": order["id"], "cents": total}, PAYMENT_TIMEOUT_S)
    LOG.write(
        "INFO",
        "order placed",
        order=order["id"],
        customer=order.get("customer", "guest"),
        cents=total,
        gift=order.get("gift") or "no",
        ms=int((time.monotonic() - started) * 1000),
    )
    return 201, {"order": order["id"], "cents": total, "receipt": receipt["receipt"]}


def show_cart(_):
    """Shows a priced example cart; it calls nobody."""
    items = [{"sku": "tea", "count": 2}, {"sku": "mug"}]
    return 200, {"cents": sum(orders.item_price(item) for item in items)}


run({("POST", "/orders"): place_order, ("GET", "/cart"): show_cart})
