"""German notes: compounds, umlauts, inflected forms."""

from evals.sets_recall import lines

TOLD = """
g1 | Meine Schwester Anneke wohnt seit August in Rostock und arbeitet dort im Hafen.
g2 | Der Kühlschrank in der Küche macht seit gestern laute Geräusche.
g3 | Ich trinke morgens zwei Tassen grünen Tee, Kaffee vertrage ich nicht.
g4 | Unser Hund heißt Pumpernickel und hat Angst vor Gewitter.
g5 | Die Steuererklärung muss bis Ende Juli beim Finanzamt sein.
g6 | Im Urlaub waren wir drei Wochen an der Ostsee und haben fast nur gelesen.
g7 | Mein Fahrrad steht zur Reparatur in der Werkstatt am Bahnhof.
g8 | Herr Böttcher ist der Hausmeister, seine Sprechstunde ist dienstags.
g9 | Das Passwort für den Drucker liegt im obersten Schubfach.
g10 | Ich lerne seit einem Jahr Geige und übe jeden Abend zwanzig Minuten.
g11 | Die Kinder haben am Freitag schulfrei, weil die Lehrer eine Fortbildung haben.
g12 | Zum Geburtstag wünscht sich Oma einen Gutschein für die Sauna.
g13 | Der Mietvertrag läuft bis zum 30. September, die Kündigungsfrist beträgt drei Monate.
g14 | Ich habe eine Haselnussallergie und reagiere auch auf Äpfel.
g15 | Unser Projekt heißt Leuchtturm und soll im Oktober fertig sein.
g16 | Die Heizung wurde am Mittwoch entlüftet, im Bad ist sie trotzdem kalt.
g17 | Jörg hat die Prüfung beim zweiten Versuch bestanden.
g18 | Samstags kaufen wir auf dem Wochenmarkt Gemüse und Käse ein.
g19 | Die Versicherung hat den Wasserschaden im Keller bezahlt.
g20 | Ich schreibe meine Masterarbeit über Vogelzug in Mitteleuropa.
g21 | Der neue Kollege heißt Emre und kommt aus Izmir.
g22 | Die Besprechung wurde von Montag auf Donnerstag verschoben.
g23 | Im Garten blühen die Pfingstrosen, die Rosen brauchen noch.
g24 | Ich fahre mit dem Zug zur Arbeit, das dauert fünfundvierzig Minuten.
g25 | Das Auto braucht im November neue Winterreifen.
g26 | Mein Lieblingsbuch ist ein Roman über einen Bergführer im Karwendel.
g27 | Die Impfung gegen Tetanus ist nächstes Jahr fällig.
g28 | Wir haben den Vertrag mit dem Stromanbieter gekündigt.
g29 | Frau Yıldız gibt den Kindern mittwochs Nachhilfe in Mathematik.
g30 | Abends schaue ich am liebsten Dokumentarfilme über die Tiefsee.
"""

ASKED = """
Wo lebt Anneke? => g1
Welches Gerät ist zu laut? => g2
Was trinke ich zum Frühstück? => g3
Wie heißt unser Hund? => g4
Bis wann muss ich die Steuer machen? => g5
Wo waren wir in den Ferien? => g6
Wo ist mein Rad gerade? => g7
Wann kann ich den Hausmeister sprechen? => g8
Wo finde ich das Kennwort des Druckers? => g9
Welches Instrument spiele ich? => g10
Warum ist am Freitag keine Schule? => g11
Was soll ich Oma schenken? => g12
Wann endet der Mietvertrag? => g13
Worauf bin ich allergisch? => g14
Wann soll das Projekt Leuchtturm abgeschlossen werden? => g15
Was stimmt im Badezimmer nicht? => g16
Hat Jörg die Prüfungen geschafft? => g17
Wo kaufen wir Gemüse? => g18
Wer hat für den Schaden im Keller gezahlt? => g19
Was ist das Thema meiner Masterarbeit? => g20
Woher kommt Emre? => g21
Auf welchen Tag wurde die Besprechung verlegt? => g22
Welche Blumen blühen im Garten? => g23
Wie lange brauche ich zur Arbeit? => g24
Was muss am Auto gemacht werden? => g25
Welche Bücher mag ich? => g26
Wann muss ich mich wieder impfen lassen? => g27
Welchen Vertrag haben wir gekündigt? => g28
Wer unterrichtet die Kinder in Mathe? => g29
Welche Filme sehe ich gern? => g30
"""


def load():
    return lines(TOLD, ASKED)
