"""Rule tables for structured personal identifiers: shapes, labels and which check digits hold them.

A shape is a form that ordinary text does not have (dots, dashes, letters in fixed places); a label is a
word beside plain digits. Either way the number must pass the check of the named ``stdnum`` modules.
Labels are written as ``normal`` leaves them, in lower case.
"""

# ruff: noqa: E501

from __future__ import annotations

#: detector, stdnum modules (any may accept), shape.
SHAPES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("us_ssn", ("us.ssn",), r"\d{3}[- ]\d{2}[- ]\d{4}"),
    ("us_itin", ("us.itin",), r"9\d{2}-\d{2}-\d{4}"),
    ("gb_nino", ("gb.nino",), r"(?i:[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z])\s?\d{2}\s?\d{2}\s?\d{2}\s?(?i:[A-D])"),
    (
        "it_codice_fiscale",
        ("it.codicefiscale",),
        r"(?i:[A-Z]{6}[0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{3}[A-Z])",
    ),
    (
        "es_dni",
        ("es.dni", "es.nie"),
        r"(?:[XYZxyz]-?\d{7}-?[A-Za-z]|\d{8}[- ]?[A-Za-z]|\d{2}\.\d{3}\.\d{3}[- ]?[A-Za-z])",
    ),
    ("fr_nir", ("fr.nir",), r"[1-478] ?\d{2} ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3} ?\d{2}"),
    ("be_national_number", ("be.nn", "be.bis"), r"\d{2}\.\d{2}\.\d{2}-\d{3}\.\d{2}"),
    ("se_personnummer", ("se.personnummer",), r"(?:19|20)?\d{6}[-+]\d{4}"),
    ("dk_cpr", ("dk.cpr",), r"[0-3]\d[01]\d{3}-\d{4}"),
    ("fi_hetu", ("fi.hetu",), r"[0-3]\d[01]\d{3}[-+ABCDEFYXWVU]\d{3}[0-9A-Z]"),
    ("lv_personal_code", ("lv.pvn",), r"[0-3]\d[01]\d{3}-\d{5}"),
    ("is_kennitala", ("is_.kennitala",), r"[0-7]\d[01]\d{3}-\d{4}"),
    ("cz_rodne_cislo", ("cz.rc", "sk.rc"), r"\d{2}[0-8]\d[0-3]\d/\d{3,4}"),
    ("ch_ahv", ("ch.ssn",), r"756\.?\d{4}\.?\d{4}\.?\d{2}"),
    ("br_cpf", ("br.cpf",), r"\d{3}\.\d{3}\.\d{3}-\d{2}"),
    ("br_cnpj", ("br.cnpj",), r"\d{2}\.\d{3}\.\d{3}/\d{4}-\d{2}"),
    ("ar_cuit", ("ar.cuit",), r"(?:2[0347]|3[034])-\d{8}-\d"),
    ("cl_rut", ("cl.rut",), r"\d{1,2}\.\d{3}\.\d{3}-[\dkK]"),
    ("mx_curp", ("mx.curp",), r"(?i:[A-Z][AEIOUX][A-Z]{2}\d{6}[HMX][A-Z]{2}[B-DF-HJ-NP-TV-Z]{3}[A-Z0-9]\d)"),
    ("mx_rfc", ("mx.rfc",), r"[A-ZÑ&]{3,4}\d{6}[A-Z0-9]{3}"),
    ("in_pan", ("in_.pan",), r"[A-Z]{3}[ABCFGHLJPT][A-Z]\d{4}[A-Z]"),
    ("in_aadhaar", ("in_.aadhaar",), r"[2-9]\d{3}[ -]\d{4}[ -]\d{4}"),
    ("in_gstin", ("in_.gstin",), r"\d{2}[A-Z]{5}\d{4}[A-Z][0-9A-Z]Z[0-9A-Z]"),
    ("cn_resident_id", ("cn.ric",), r"[1-9]\d{5}(?:19|20)\d{2}[01]\d[0-3]\d\d{3}[\dXx]"),
    ("kr_rrn", ("kr.rrn",), r"\d{2}[01]\d[0-3]\d-[1-8]\d{6}"),
    ("th_national_id", ("th.pin",), r"[1-8]-\d{4}-\d{5}-\d{2}-\d"),
    ("my_nric", ("my.nric",), r"\d{2}[01]\d[0-3]\d-\d{2}-\d{4}"),
    ("sg_nric", ("sg.nric",), r"[STFGM]\d{7}[A-Z]"),
    ("tw_national_id", ("tw.id",), r"[A-Z][1289]\d{8}"),
    ("ve_rif", ("ve.rif",), r"[VEJPG]-\d{8}-\d"),
    ("do_cedula", ("do.cedula",), r"\d{3}-\d{7}-\d"),
    ("pk_cnic", ("pk.cnic",), r"\d{5}-\d{7}-\d"),
    (
        "eu_vat",
        ("eu.vat",),
        r"(?:AT ?U|BE ?[01]|BG ?|CY ?|CZ ?|DE ?|DK ?|EE ?|EL ?|ES ?|FI ?|FR ?|HR ?|HU ?|IE ?|IT ?|LT ?|LU ?|LV ?|MT ?|NL ?|PL ?|PT ?|RO ?|SE ?|SI ?|SK ?)[0-9A-Z][0-9A-Z.]{6,12}[0-9A-Z]",
    ),
    ("gb_vat", ("gb.vat",), r"GB ?\d{3} ?\d{4} ?\d{2}"),
    ("ch_vat", ("ch.vat", "ch.uid"), r"CHE-?\d{3}\.\d{3}\.\d{3}(?: ?(?:MWST|TVA|IVA))?"),
)

#: detector, stdnum modules, label alternation. The number follows within 30 characters without digits.
LABELLED: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("us_ssn", ("us.ssn", "us.itin"), r"ssn|s\.s\.n|social\s+security|social\s+sec|itin"),
    ("us_ein", ("us.ein",), r"ein|employer\s+identification(?:\s+number)?|federal\s+tax\s+id"),
    ("us_routing", ("us.rtn",), r"routing(?:\s+(?:number|no))?|aba(?:\s+number)?|rtn"),
    ("gb_nhs", ("gb.nhs",), r"nhs(?:\s+(?:number|no))?"),
    ("gb_utr", ("gb.utr",), r"utr|unique\s+taxpayer\s+reference"),
    ("gb_nino", ("gb.nino",), r"nino|national\s+insurance|ni\s+(?:number|no)"),
    (
        "de_tax_id",
        ("de.idnr",),
        r"steuer-?\s?id\w*|idnr|steueridentifikationsnummer|steuer-identifikationsnummer|tax\s+id\w*|tin",
    ),
    ("de_tax_number", ("de.stnr",), r"steuernummer|st\.?-?nr"),
    ("nl_bsn", ("nl.bsn",), r"bsn|burgerservicenummer|sofinummer"),
    (
        "be_national_number",
        ("be.nn",),
        r"rijksregisternummer|numero\s+(?:de\s+registre\s+)?national|national\s+(?:register\s+)?number|insz|niss",
    ),
    ("fr_nir", ("fr.nir",), r"nir|securite\s+sociale|insee|numero\s+de\s+secu"),
    ("fr_nif", ("fr.nif",), r"numero\s+fiscal|spi|nif"),
    ("pt_nif", ("pt.nif",), r"nif|contribuinte|numero\s+de\s+identificacao\s+fiscal"),
    ("pt_cc", ("pt.cc",), r"cartao\s+de\s+cidadao|cc"),
    ("es_dni", ("es.dni", "es.nie", "es.nif"), r"dni|nie|nif|documento\s+nacional"),
    ("it_partita_iva", ("it.iva",), r"partita\s+iva|p\.?\s?iva"),
    ("pl_pesel", ("pl.pesel",), r"pesel"),
    ("pl_nip", ("pl.nip",), r"nip"),
    ("cz_rodne_cislo", ("cz.rc",), r"rodne\s+cislo|rc|birth\s+number"),
    ("sk_rodne_cislo", ("sk.rc",), r"rodne\s+cislo"),
    ("hu_tax_id", ("hu.anum",), r"adoszam|adoazonosito"),
    ("ro_cnp", ("ro.cnp",), r"cnp|cod\s+numeric\s+personal"),
    ("bg_egn", ("bg.egn", "bg.pnf"), r"egn|егн"),
    ("hr_oib", ("hr.oib",), r"oib"),
    ("si_emso", ("si.emso",), r"emso"),
    ("si_tax", ("si.ddv",), r"davcna\s+stevilka"),
    ("rs_jmbg", ("si.emso", "rs.pib"), r"jmbg|pib"),
    ("gr_amka", ("gr.amka",), r"amka|αμκα"),
    ("gr_afm", ("gr.vat",), r"afm|αφμ"),
    ("at_svnr", ("at.vnr",), r"svnr|sv-?nummer|sozialversicherungsnummer|versicherungsnummer"),
    ("at_tax", ("at.tin",), r"abgabenkontonummer|steuernummer"),
    ("ch_ahv", ("ch.ssn",), r"ahv(?:-?\w+)?|avs|sozialversicherungsnummer"),
    ("ie_pps", ("ie.pps",), r"pps(?:n|\s+number)?"),
    ("lu_tin", ("lu.tva",), r"matricule"),
    ("ee_isikukood", ("ee.ik",), r"isikukood|personal\s+(?:id(?:entification)?\s+)?code"),
    ("lt_asmens_kodas", ("lt.asmens",), r"asmens\s+kodas|personal\s+code"),
    ("lv_personal_code", ("lv.pvn",), r"personas\s+kods|personal\s+code"),
    (
        "no_fodselsnummer",
        ("no.fodselsnummer",),
        r"fodselsnummer|personnummer|birth\s+number|national\s+identity\s+number|fnr",
    ),
    ("se_personnummer", ("se.personnummer",), r"personnummer|personal\s+(?:identity\s+)?number|pnr"),
    ("dk_cpr", ("dk.cpr",), r"cpr(?:-?nummer|-?nr)?"),
    ("fi_hetu", ("fi.hetu",), r"hetu|henkilotunnus|personal\s+identity\s+code"),
    ("is_kennitala", ("is_.kennitala",), r"kennitala"),
    ("tr_tckn", ("tr.tckimlik",), r"tckn|tc\s+kimlik\w*(?:\s+no)?|t\.c\.\s+kimlik|kimlik\s+no"),
    ("ru_inn", ("ru.inn",), r"инн|inn"),
    ("ua_rntrc", ("ua.rntrc",), r"рнокпп|rntrc|іпн|ipn"),
    ("il_id", ("il.idnr",), r"teudat\s+zehut|תעודת\s+זהות|ת\.?ז|israeli\s+id"),
    ("za_id", ("za.idnr",), r"(?:south\s+african\s+|sa\s+|rsa\s+)?id(?:entity)?\s+(?:number|no)|id"),
    ("eg_id", ("eg.tn",), r"الرقم\s+القومي"),
    ("au_tfn", ("au.tfn",), r"tfn|tax\s+file(?:\s+number)?"),
    ("au_abn", ("au.abn",), r"abn"),
    ("au_medicare", ("au.medicare",), r"medicare"),
    ("nz_ird", ("nz.ird",), r"ird"),
    ("ca_sin", ("ca.sin",), r"sin|social\s+insurance|nas"),
    ("br_cpf", ("br.cpf",), r"cpf"),
    ("br_cnpj", ("br.cnpj",), r"cnpj"),
    ("ar_dni", ("ar.cuit", "ar.dni"), r"cuit|cuil|dni"),
    ("cl_rut", ("cl.rut",), r"rut|run"),
    ("co_nit", ("co.nit",), r"nit"),
    ("ec_ci", ("ec.ci", "ec.ruc"), r"cedula|c\.i|ruc"),
    ("do_cedula", ("do.cedula",), r"cedula"),
    ("uy_ci", ("uy.rut", "uy.ci"), r"cedula|rut|ci"),
    ("pe_dni", ("pe.cui", "pe.ruc"), r"dni|cui|ruc"),
    ("cr_cedula", ("cr.cpf",), r"cedula"),
    ("mx_curp", ("mx.curp",), r"curp"),
    ("mx_rfc", ("mx.rfc",), r"rfc"),
    ("in_aadhaar", ("in_.aadhaar", "in_.vid"), r"aadhaar|aadhar|uid(?:ai)?|आधार"),
    ("in_pan", ("in_.pan",), r"pan(?:\s+card)?"),
    ("in_epic", ("in_.epic",), r"epic|voter\s+id"),
    ("cn_resident_id", ("cn.ric",), r"身份证号?码?|公民身份号码|resident\s+id"),
    ("tw_national_id", ("tw.id",), r"身分證字?號?"),
    ("jp_my_number", ("jp.in_",), r"マイナンバー|個人番号|my\s+number"),
    ("kr_rrn", ("kr.rrn",), r"주민등록번호|rrn"),
    ("th_national_id", ("th.pin",), r"บัตรประชาชน|thai\s+id|เลขประจำตัวประชาชน"),
    ("id_nik", ("id.nik",), r"nik|ktp"),
    ("my_nric", ("my.nric",), r"nric|mykad|ic\s+(?:number|no)"),
    ("imei", ("imei",), r"imei"),
    ("eu_vat", ("eu.vat", "gb.vat", "ch.vat", "no.mva"), r"vat(?:\s+(?:number|no|id))?|ust-?id\w*|tva|btw|iva|mwst"),
)

#: Labels that allow a number without a check digit, with the form it has.
UNCHECKED: tuple[tuple[str, str, str], ...] = (
    (
        "passport",
        r"passport|passeport|reisepass\w*|pasaporte|passaporto|passaporte|paspoort\w*|paszport\w*|загранпаспорт\w*|паспорт\w*|pasaport\w*|护照号?码?|パスポート\w*|여권번호",
        r"(?:[A-Z]{1,3}\s?\d{5,9}[A-Z]?|\d{8,9}|\d{2}\s?\d{2}\s?\d{6}|\d{2}[A-Z]{2}\d{5}|[CFGHJKLMNPRTVWXYZ][CFGHJKLMNPRTVWXYZ0-9]{8})",
    ),
    (
        "driver_licence",
        r"driv(?:er|ing)['’]?s?\s+licen[cs]e|driving\s+licen[cs]e|dl\s+(?:number|no)|fuhrerschein\w*|permis\s+de\s+conduire|patente(?:\s+di\s+guida)?|carnet\s+de\s+conducir|rijbewijs\w*",
        r"(?:[A-Z]{1,5}[- ]?\d{3,4}[- ]?\d{3,4}[- ]?\d{0,5}[A-Z0-9]{0,5}|\d{7,12}|[A-Z9]{5}\d{6}[A-Z9]{2}\d[A-Z]{2})",
    ),
    (
        "id_card",
        r"(?:identity|id)\s+card|national\s+id(?:entity)?|personalausweis\w*|ausweisnummer|carte\s+(?:nationale\s+)?d'identite|carta\s+d'identita|cni|documento\s+de\s+identidad|dowod\s+osobisty|identification\s+number|nid",
        r"(?:[A-Z]{1,3}[- ]?\d{6,9}[A-Z]{0,2}|[CFGHJKLMNPRTVWXYZ][CFGHJKLMNPRTVWXYZ0-9]{8}|\d{8,14}[A-Z]?)",
    ),
    (
        "bank_account",
        r"(?:bank\s+|checking\s+|savings\s+|current\s+)account(?:\s+(?:number|no|nr))?|account\s+(?:number|no)|acct\s+(?:number|no)|kontonummer|kto-?nr|numero\s+de\s+(?:cuenta|compte)|clabe",
        r"(?:\d{2,4}[- ])?\d{7,18}",
    ),
    ("sort_code", r"sort\s+code", r"\d{2}[- ]\d{2}[- ]\d{2}"),
    (
        "medical_record",
        r"mrn|medical\s+record(?:\s+(?:number|no))?|health\s+(?:insurance|card)\s+(?:number|no|id)|krankenversichertennummer|patient\s+(?:id|number)|insurance\s+(?:member\s+)?(?:id|number)|policy\s+holder\s+id|medicare\s+(?:number|id)|mbi",
        r"(?:[A-Z]{1,4}[- ]?\d{5,12}[A-Z]?|\d{6,12}|[1-9][A-Z][A-Z0-9]\d-?[A-Z][A-Z0-9]\d-?[A-Z]{2}\d{2})",
    ),
)

_MONTH = r"(?:jan|feb|mar|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez|janvier|fevrier|mars|avril|juin|juillet|aout|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|gennaio|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre|dicembre|marz)[a-z]*\.?"
DATE = rf"(?:\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{1,2}}[-/.]\s?\d{{1,2}}[-/.]\s?(?:\d{{4}}|\d{{2}})|\d{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:of\s+|de\s+)?{_MONTH}(?:,|\s+de|\s+del)?\s+\d{{4}}|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}|\d{{4}}年\d{{1,2}}月\d{{1,2}}日|\d{{8}})"
BIRTH = r"(?:dob|d\.o\.b\.?|date\s+of\s+birth|birth\s?date|birthday|born(?:\s+on)?|geburtsdatum|geburtstag|geboren(?:\s+am|\s+op)?|geb\.|date\s+de\s+naissance|nee?\s+le|fecha\s+de\s+nacimiento|nacid[oa]\s+el|nacio\s+el|data\s+de\s+nascimento|nascid[oa]\s+em|data\s+di\s+nascita|nat[oa]\s+il|geboortedatum|data\s+urodzenia|urodzon[ya]|fodt|fodelsedatum|dogum\s+tarihi|дата\s+рождения|родил(?:ся|ась)|出生日期|出生年月|生年月日|생년월일|生日)"

#: Words before digits that say they are something else.
NOT_PERSONAL = r"(?i)(?:order|invoice|ticket|tracking|track|parcel|shipment|serial|part|sku|isbn|issn|doi|build|commit|version|release|ref|reference|po|batch|lot|model|revision|rev|timestamp|epoch|unix|ts|run|job|task|request|trace|span|session|message|msg|transaction|txn|receipt|booking|case|asset|product|item|row|record|uuid|hash|port|pid|seq|sequence|offset|snapshot|bug|issue|pr|article|nummer\s+der\s+bestellung|bestellnummer|bestellung|rechnung|auftrag|sendung|commande|facture|pedido|factura)(?:s|\s+(?:number|no\.?|nr\.?|id|code|key|ids|numbers))?\s*(?:is|was|=|:|#|nr\.?|no\.?)?\s*[#:\"'(\[]?\s*$"
