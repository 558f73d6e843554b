"""Letters that look Latin and are not, and Latin letters with marks that decomposition leaves alone."""

from __future__ import annotations

#: Cyrillic, Greek, Armenian and Cherokee letters by the Latin letter they pass for.
LOOKALIKES: dict[str, str] = dict(
    zip(
        "аеорсухіјѕһԁԛԝкмтвнгпьАВЕКМНОРСТУХІЈЅԌԚԜҮΑΒΕΖΗΙΚΜΝΟΡΤΥΧαεικνορτυχγωςσηօսոցհԼՕՍᎪᎬᎳᏀᎠᎡᎢᎥᎻᎷᏃᏢᏚᏙᏟ",
        "aeopcyxijshdqwkmtbhrnbABEKMHOPCTYXIJSGQWYABEZHIKMNOPTYXaeiknoptuxywconouoghLOUAEWGDRTiHMZPSVC",
        strict=True,
    )
)

#: Letters NFKC does not turn into plain ones: strokes, small capitals, boxed and flag letters.
LATIN_FOLDS: dict[str, str] = dict(
    zip(
        "øØłŁđĐħŧıȷɡɑɩʟʀɢɴɪʙʜᴀᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢꜰꜱʏƽǃ’‘‚‛“”„‟«»´＇–—‐‑‒−",
        "oOlLdDhtijgaiLRGNIBHACDEJKMOPTUVWZFSYs!''''\"\"\"\"\"\"''------",
        strict=True,
    )
)

STYLED: dict[str, str] = {
    **{chr(0x1F150 + i): chr(65 + i) for i in range(26)},
    **{chr(0x1F170 + i): chr(65 + i) for i in range(26)},
    **{chr(0x1F1E6 + i): chr(65 + i) for i in range(26)},
}
