//! Names of people, places and banks.

/// A state, one of its local governments, a town there, and its main language.
pub(super) type Place = (&'static str, &'static str, &'static str, &'static str);

pub(super) struct Names {
    pub women: &'static [&'static str],
    pub men: &'static [&'static str],
    pub families: &'static [&'static str],
    pub places: &'static [Place],
}

pub(super) const NIGERIA: Names = Names {
    women: &[
        "Adaeze", "Amina", "Bisola", "Chidinma", "Damilola", "Ebele", "Fatima", "Halima", "Ifeoma",
        "Kehinde", "Maryam", "Ngozi", "Omolara", "Simisola", "Uchenna", "Zainab",
    ],
    men: &[
        "Abubakar", "Adebayo", "Babatunde", "Chinedu", "Danladi", "Emeka", "Festus", "Ibrahim",
        "Kelechi", "Musa", "Nnamdi", "Olumide", "Sani", "Taiwo", "Tobenna", "Yakubu",
    ],
    families: &[
        "Adeyemi", "Afolabi", "Bello", "Danjuma", "Ekwueme", "Ezeonu", "Garba", "Ibekwe", "Lawal",
        "Mohammed", "Nwosu", "Obaseki", "Ogunleye", "Okafor", "Okonjo", "Onyeka", "Sule", "Usman",
    ],
    places: &[
        ("Lagos", "Ikeja", "Agege", "Yoruba"),
        ("Lagos", "Eti-Osa", "Lekki", "Yoruba"),
        ("Oyo", "Ibadan North", "Bodija", "Yoruba"),
        ("Enugu", "Nsukka", "Obukpa", "Igbo"),
        ("Anambra", "Awka South", "Amawbia", "Igbo"),
        ("Kano", "Nassarawa", "Giginyu", "Hausa"),
        ("Kaduna", "Zaria", "Samaru", "Hausa"),
        ("Rivers", "Obio-Akpor", "Rumuola", "Ikwerre"),
        ("Edo", "Oredo", "Uselu", "Edo"),
        ("Plateau", "Jos North", "Naraguta", "Berom"),
    ],
};

pub(super) const GHANA: Names = Names {
    women: &["Abena", "Adwoa", "Afua", "Akosua", "Ama", "Dede", "Efua", "Esi", "Mawusi", "Yaa"],
    men: &["Edem", "Kofi", "Kojo", "Kwabena", "Kwadwo", "Kwaku", "Kwame", "Nii", "Selorm", "Yaw"],
    families: &[
        "Acheampong", "Agyeman", "Amoah", "Ansah", "Asante", "Boateng", "Darko", "Mensah",
        "Nkansah", "Ofori", "Osei", "Owusu", "Quartey", "Tetteh",
    ],
    places: &[
        ("Greater Accra", "Accra Metropolitan", "Osu", "Ga"),
        ("Ashanti", "Kumasi Metropolitan", "Bantama", "Twi"),
        ("Central", "Cape Coast Metropolitan", "Abura", "Fante"),
        ("Volta", "Ho Municipal", "Bankoe", "Ewe"),
        ("Northern", "Tamale Metropolitan", "Lamashegu", "Dagbani"),
    ],
};

/// A bank and its central bank code.
pub(super) type Bank = (&'static str, &'static str);

pub(super) const BANKS: [Bank; 6] = [
    ("ACCESS BANK PLC", "044"),
    ("FIRST BANK OF NIGERIA PLC", "011"),
    ("GTBANK PLC", "058"),
    ("UNITED BANK FOR AFRICA PLC", "033"),
    ("WEMA BANK PLC", "035"),
    ("ZENITH BANK PLC", "057"),
];

pub(super) const STREETS: [&str; 8] = [
    "Acacia Close", "Baobab Street", "Cocoa Road", "Harmattan Avenue", "Iroko Crescent",
    "Market Road", "Palm Grove Street", "Savannah Way",
];

pub(super) const PROFESSIONS: [&str; 8] = [
    "ACCOUNTING", "CATERING", "CIVIL SERVANT", "FARMING", "NURSING", "TAILORING", "TEACHING",
    "TRADING",
];
